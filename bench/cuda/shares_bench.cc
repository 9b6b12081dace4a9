// SPDX-License-Identifier: Apache-2.0
// How well libgrus-cuda.so holds containers to their shares of a GPU's time: its law (nodeagent/cuda/gpu_time.h) and
// the agent's lending, in virtual time. One line for each story: what was asked for, what came, and whether that is
// met. Deterministic; what a real GPU does in other ways is not in it.
//   cuda_shares_bench [WORDS...]   only the stories whose names hold all of these words
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/nodeagent/cuda/gpu_time_sim.h"
#include "tests/nodeagent/cuda/sim_agent.h"

namespace grus::cuda {
namespace {

using Sharing = SimGpu::Sharing;
using Works = std::function<SimWork(std::uint64_t number)>;

constexpr std::uint64_t kLength = 10 * kSec;
constexpr double kOverAll = 3, kEachSecond = 8;  // Points.
constexpr std::array kMillis = {100U, 250U, 500U, 750U};
constexpr std::array kKernels = {5 * kUs, 20 * kUs, 200 * kUs, 2 * kMs, 20 * kMs};

std::vector<std::string_view> wanted_words;
int stories = 0, met_stories = 0;

template <typename... Values>
std::string Text(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

std::string Name(std::uint64_t ns) {
  return ns >= kMs ? Text("%g ms", static_cast<double>(ns) / kMs) : Text("%g us", static_cast<double>(ns) / kUs);
}

bool IsWanted(const std::string& story) {
  return std::ranges::all_of(wanted_words, [&](std::string_view word) { return story.find(word) != story.npos; });
}

void Print(const std::string& story, const std::string& asked, const std::string& came, bool is_met) {
  ++stories;
  met_stories += is_met ? 1 : 0;
  std::printf("%-62s | %-26s | %-44s | %s\n", story.c_str(), asked.c_str(), came.c_str(), is_met ? "met" : "MISSED");
  std::fflush(stdout);
}

// --- what programs do

// The same each time, and as if by chance.
std::uint64_t Random(std::uint64_t number) {
  number = (number + 1) * 0x9E3779B97F4A7C15;
  number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
  number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
  return number ^ (number >> 31);
}

Works Kernels(std::uint64_t ns) {
  return [ns](std::uint64_t) { return SimWork{1, ns}; };
}

SimProcess Streams(const SimProgram& program, std::size_t count = 1) {
  return {.programs = std::vector<SimProgram>(count, program)};
}

SimContainer Container(std::uint32_t milli, const SimProgram& program, std::size_t streams = 1,
                       std::size_t processes = 1) {
  return {.milli = milli, .processes = std::vector<SimProcess>(processes, Streams(program, streams))};
}

// --- alone

// One that does not always want the GPU gets what it would without a limit, at most.
void Alone(const std::string& what, const SimProgram& program, std::size_t streams = 1, std::size_t processes = 1) {
  for (const std::uint32_t milli : kMillis) {
    const std::string story = Text("alone, %u %%, ", milli / 10) + what;
    if (!IsWanted(story)) continue;
    SimNode unlimited({Container(0, program, streams, processes)});
    unlimited.RunUntil(2 * kSec);
    const double asked = std::min(milli / 10.0, unlimited.Points(0, 0, 2 * kSec));
    SimNode node({Container(milli, program, streams, processes)});
    node.RunUntil(kLength);
    const double came = node.Points(0, 0, kLength), worst = node.WorstSecond(0, 0, kLength, asked);
    Print(story, Text("%.1f points", asked), Text("%.1f, worst second %+.1f", came, worst),
          std::abs(came - asked) <= kOverAll && std::abs(worst) <= kEachSecond);
  }
}

void AloneStories() {
  for (const std::uint64_t kernel : kKernels) {
    const std::string kernels = "kernels of " + Name(kernel);
    const SimProgram program = {.next = Kernels(kernel)};
    Alone(kernels, program);
    Alone(kernels + ", 4 streams", program, 4);
    Alone(kernels + ", 4 processes", program, 1, 4);
    Alone(kernels + ", waits for each", {.next = Kernels(kernel), .sync_every = 1});
  }
  Alone("kernels of 200 us, 4 streams side by side", {.next = Kernels(200 * kUs), .width = 0.25}, 4);
  Alone("kernels of 20 us, 50 us apart", {.next = Kernels(20 * kUs), .gap = 50 * kUs});
  Alone("kernels of 200 us, 8 streams and 4 processes", {.next = Kernels(200 * kUs)}, 8, 4);

  const SimProgram graphs = {.next = Kernels(5 * kMs)};
  Alone("graphs of 5 ms", graphs);
  Alone("graphs of 5 ms, 4 processes", graphs, 1, 4);
  Alone("graphs of 5 ms, waits for each", {.next = Kernels(5 * kMs), .sync_every = 1});

  const auto mixed = [](std::uint64_t number) {
    const std::uint64_t key = Random(number) % 12;
    return SimWork{key, (5 * kUs) << key};
  };
  Alone("mixed, 12 kernels of 5 us to 10 ms", {.next = mixed});
  Alone("mixed, 12 kernels of 5 us to 10 ms, 4 streams", {.next = mixed}, 4);
  Alone("mixed, one kernel that takes 10 us or 10 ms by turns", {.next = [](std::uint64_t number) {
          return SimWork{1, number % 2 == 0 ? 10 * kUs : 10 * kMs};
        }});
  Alone("mixed, one kernel that takes 20 us, one in 100 10 ms", {.next = [](std::uint64_t number) {
          return SimWork{1, Random(number) % 100 == 0 ? 10 * kMs : 20 * kUs};
        }});
  Alone("mixed, each launch is of a new kernel of 20 us", {.next = [](std::uint64_t number) {
          return SimWork{number + 1, 20 * kUs};
        }});
  Alone("mixed, each launch is of a new kernel of 2 ms", {.next = [](std::uint64_t number) {
          return SimWork{number + 1, 2 * kMs};
        }});
  Alone("mixed, a new kernel of 10 ms after 1,000 of 5 us", {.next = [](std::uint64_t number) {
          return number % 1001 == 1000 ? SimWork{number, 10 * kMs} : SimWork{1, 5 * kUs};
        }});
  Alone("mixed, steps of 800 kernels of 20 us, waits for each step", {.next = Kernels(20 * kUs), .sync_every = 800});

  Alone("bursts, 100 kernels of 200 us, then 20 ms of nothing",
        {.next = Kernels(200 * kUs), .sync_every = 100, .pause = 20 * kMs});
  Alone("bursts, 1,000 kernels of 20 us, then 50 ms of nothing",
        {.next = Kernels(20 * kUs), .sync_every = 1000, .pause = 50 * kMs});
  Alone("bursts, 20 kernels of 2 ms, then 20 ms of nothing",
        {.next = Kernels(2 * kMs), .sync_every = 20, .pause = 20 * kMs});
}

// How long the container had more than its share, at most, at a time.
std::uint64_t LongestOver(const SimNode& node, std::uint32_t milli, std::uint64_t until) {
  std::uint64_t since = 0, longest = 0;
  for (std::uint64_t time = 0; time < until; time += SimGpu::kBin) {
    if (node.gpu().Busy(0, 0, time) <= time * milli / kWholeGpu + 50 * kMs) since = time;
    longest = std::max(longest, time - since);
  }
  return longest;
}

void LongKernels() {
  for (const std::uint32_t milli : kMillis) {
    for (const std::size_t streams : {1U, 4U}) {
      const std::string story = Text("alone, %u %%, kernels of 500 ms, streams: %zu", milli / 10, streams);
      if (!IsWanted(story)) continue;
      SimNode node({Container(milli, {.next = Kernels(500 * kMs)}, streams)});
      node.RunUntil(60 * kSec);
      const double over = static_cast<double>(LongestOver(node, milli, 60 * kSec)) / kSec;
      const double came = node.Points(0, 0, 60 * kSec);
      Print(story, "paid back within 10 s", Text("%.1f s, %.1f points over 60 s", over, came),
            over <= 10 && std::abs(came - milli / 10.0) <= kOverAll);
    }
  }
}

// --- several containers

const char* Name(Sharing sharing) { return sharing == Sharing::kTimeSlices ? "turns of 2 ms" : "at once"; }

struct Side {
  SimProgram program;
  std::string name;
};
Side Of(std::uint64_t kernel) { return {{.next = Kernels(kernel)}, Name(kernel)}; }

void SevenToThree(const Side& seven, const Side& three, Sharing sharing) {
  const std::string story = Text("700 and 300, %s: ", Name(sharing)) + seven.name + " beside " + three.name;
  if (!IsWanted(story)) return;
  SimNode node({Container(700, seven.program), Container(300, three.program)}, sharing);
  node.SetAgent(LendingAgent());
  node.RunUntil(kLength + kSec);
  const double first = node.Points(0, kSec, kLength + kSec), second = node.Points(1, kSec, kLength + kSec);
  const double off = 100 * (first / second / (7.0 / 3) - 1);
  Print(story, "7:3 within 5 %, 95 used", Text("%.1f and %.1f: %+.1f %%", first, second, off),
        std::abs(off) <= 5 && first + second >= 95);
}

void AllBusy(const std::vector<std::uint32_t>& millis, std::uint64_t kernel, Sharing sharing) {
  std::string names;
  std::vector<SimContainer> containers;
  for (const std::uint32_t milli : millis) {
    names += Text("%s%u", names.empty() ? "" : ", ", milli);
    containers.push_back(Container(milli, {.next = Kernels(kernel)}));
  }
  const std::string story = "all busy, " + names + Text(", %s: kernels of ", Name(sharing)) + Name(kernel);
  if (!IsWanted(story)) return;
  SimNode node(std::move(containers), sharing);
  node.SetAgent(LendingAgent());
  node.RunUntil(kLength + kSec);
  std::string came;
  bool is_met = true;
  for (std::size_t i = 0; i < millis.size(); ++i) {
    const double points = node.Points(i, kSec, kLength + kSec);
    came += Text("%s%.1f", i == 0 ? "" : ", ", points);
    is_met = is_met && std::abs(points - millis[i] / 10.0) <= kOverAll;
  }
  Print(story, "each within 3 points", came, is_met);
}

void TenEqual(std::uint64_t kernel, Sharing sharing) {
  const std::string story = Text("ten of 100, %s: kernels of ", Name(sharing)) + Name(kernel);
  if (!IsWanted(story)) return;
  SimNode node(std::vector<SimContainer>(10, Container(100, {.next = Kernels(kernel)})), sharing);
  node.SetAgent(LendingAgent());
  node.RunUntil(kLength + kSec);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const double points = node.Points(i, kSec, kLength + kSec);
    sum += points;
    squares += points * points;
  }
  const double jain = sum * sum / (10 * squares);
  Print(story, "Jain 0.99, 95 used", Text("%.4f, %.1f used", jain, sum), jain >= 0.99 && sum >= 95);
}

constexpr std::uint64_t kWindow = 100 * kMs;

// From `wake` on, until a window begins in which the container got its share. One that waits for each launch loses some
// of it to the GPU's turns, as nothing of it is queued when its own begins: a tenth.
std::uint64_t UntilItsShare(const SimNode& node, std::uint64_t wake, bool waits) {
  const double share = node.milli(0) / 10.0, enough = waits ? share * 0.9 : share - kOverAll;
  std::uint64_t from = wake / SimGpu::kBin * SimGpu::kBin;
  while (from < wake + 3 * kSec && node.Points(0, from, from + kWindow) < enough) from += SimGpu::kBin;
  return from > wake ? from - wake : 0;
}

// The owner works for a second, or not at all, and is idle then; it wakes up at several times between two looks of the
// agent. The worst counts.
void Lent(std::uint32_t milli, const Side& owner, const Side& other, Sharing sharing, bool has_worked = true) {
  const std::string story = Text("%u %s, %s: ", milli, has_worked ? "wakes up" : "starts", Name(sharing)) + owner.name +
                            " beside " + other.name;
  if (!IsWanted(story)) return;
  double least = 100;
  std::uint64_t latest = 0;
  for (const std::uint64_t phase : {1U, 10U, 30U, 50U, 70U, 90U, 99U}) {
    const std::uint64_t wake = 5 * kSec + phase * kMs;
    SimProgram before = owner.program, after = owner.program;
    before.stop = has_worked ? kSec : 0;
    after.start = wake;
    SimNode node(
        {{.milli = milli, .processes = {{.programs = {before, after}}}}, Container(1000 - milli, other.program)},
        sharing);
    node.SetAgent(LendingAgent());
    node.RunUntil(wake + 4 * kSec);
    least = std::min(least, node.Points(1, 2 * kSec, 5 * kSec));
    latest = std::max(latest, UntilItsShare(node, wake, owner.program.sync_every != 0));
  }
  Print(story, "95 points, back in 200 ms",
        Text("%.1f, back in %llu ms", least, static_cast<unsigned long long>(latest / kMs)),
        least >= 95 && latest <= 200 * kMs);
}

void SharedStories() {
  const Side waits = {{.next = Kernels(200 * kUs), .sync_every = 1}, "200 us (waits for each)"};
  const Side graphs = {{.next = Kernels(5 * kMs)}, "graphs of 5 ms"};
  for (const Sharing sharing : {Sharing::kTimeSlices, Sharing::kAtOnce}) {
    for (const auto& [seven, three] : {std::pair(20 * kUs, 2 * kMs), std::pair(2 * kMs, 20 * kUs), std::pair(kMs, kMs),
                                       std::pair(20 * kUs, 20 * kUs), std::pair(20 * kMs, 20 * kMs),
                                       std::pair(5 * kUs, 20 * kMs), std::pair(20 * kMs, 5 * kUs)}) {
      SevenToThree(Of(seven), Of(three), sharing);
    }
    SevenToThree(graphs, Of(200 * kUs), sharing);
    SevenToThree(Of(200 * kUs), graphs, sharing);
    SevenToThree(Of(200 * kUs), Of(500 * kMs), sharing);
    SevenToThree(Of(500 * kMs), Of(200 * kUs), sharing);
    for (const std::uint64_t kernel : {20 * kUs, 200 * kUs, 2 * kMs, 20 * kMs}) {
      TenEqual(kernel, sharing);
      AllBusy({500, 300, 200}, kernel, sharing);
      AllBusy({900, 100}, kernel, sharing);
    }
    for (const std::uint32_t milli : {300U, 700U}) {
      for (const std::uint64_t kernel : kKernels) {
        Lent(milli, Of(200 * kUs), Of(kernel), sharing);
        Lent(milli, Of(20 * kMs), Of(kernel), sharing);
      }
      Lent(milli, waits, Of(200 * kUs), sharing);
      Lent(milli, Of(200 * kUs), graphs, sharing);
      Lent(milli, Of(200 * kUs), Of(200 * kUs), sharing, false);
      Lent(milli, Of(20 * kMs), Of(2 * kMs), sharing, false);
    }
  }
}

}  // namespace
}  // namespace grus::cuda

int main(int argc, char** argv) {
  using namespace grus::cuda;
  wanted_words.assign(argv + 1, argv + argc);
  AloneStories();
  LongKernels();
  SharedStories();
  std::printf("%d stories, %d met\n", stories, met_stories);
  return 0;
}
