// SPDX-License-Identifier: Apache-2.0
// Progress and end of trainings as frameworks print them: the recorded logs of tests/controllers/measure/corpus, and of
// trainings on a GPU in recorded/logs.txt, that ran to their end. They are short, so their times count a hundredfold.
// Asked at a quarter, a half and three quarters of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "clientlib/model/time.h"
#include "controllers/telemetry/progress_reader.h"
#include "controllers/telemetry/progress_track.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

struct Recorded {
  const char* name;
  double epochs = 0;  // As the command would say. 0: the log says it.
  bool is_on_gpu = false;
};
constexpr Recorded kWholeRuns[] = {
    {"imagenet", 3},
    {"mmengine", 3},
    {"mmcv-1", 5},
    {"pytorch-mnist", 3},
    {"fastai", 5},
    {"ignite-log", 5},
    {"hf-plain", 3},
    {"hf-bar", 3},
    {"hf5-bar", 4},
    {"hf5-plain", 4},
    {"mxnet-bar", 6},
    {"keras2-bar", 0},
    {"keras2-lines", 0},
    {"keras3-bar", 0},
    {"keras3-lines", 0},
    {"tf-keras", 0},
    {"paddle-bar", 0},
    {"paddle-lines", 0},
    {"ignite-bar", 0},
    {"fastprogress", 0},
    {"tqdm-epochs", 0},
    {"mxnet-speedometer", 4},
    {"images-small", 0, true},
    {"images-many-epochs", 0, true},
    {"images-uneven", 0, true},
    {"language-base", 0, true},
    {"language-long-texts", 0, true},
    {"language-checkpoints", 0, true},
    {"language-small", 0, true},
    {"elementwise-pde", 0, true},
    {"jpegs-two-cpus", 0, true},
    {"jpegs-three-cpus", 0, true},
    {"refills-by-turns", 0, true},
    {"reads-parts-from-disk", 0, true},
    {"adversarial", 0, true},
    {"reinforcement", 0, true},
    {"diffusion-with-samples", 0, true},
    {"memory-grows-by-lengths", 0, true},
    {"metrics-on-the-cpu", 0, true},
    {"hugging-face-bar", 3, true},
    {"recurrent", 0, true},
    {"embeddings-adam", 0, true},
    {"jax-preallocates", 0, true},
    {"two-level-cycles", 0, true},
    {"images-large", 0, true},
    {"images-long-evaluation", 0, true},
    {"matmul-heavy", 0, true},
};

class Training {
 public:
  explicit Training(const Recorded& recorded) : stated_{.epochs = recorded.epochs} {
    const std::string name = recorded.name, program = name + " ";
    std::istringstream text(kit::ReadTreeFile(recorded.is_on_gpu
                                                  ? "tests/controllers/telemetry/recorded/logs.txt"
                                                  : "tests/controllers/measure/corpus/" + name + ".txt"));
    std::optional<WallTime> start;
    for (std::string line; std::getline(text, line);) {
      if (recorded.is_on_gpu) {
        if (!line.starts_with(program)) continue;
        line.erase(0, program.size());
      }
      const std::size_t space = line.find(' ');
      const auto time = kube::ParseTime(line.substr(0, space));
      if (!time) continue;
      if (!start) start = time->value;
      const WallTime later = *start + 100 * (time->value - *start);
      lines_.push_back(kube::ToMicroText({later}) + line.substr(space) + "\n");
    }
  }

  // What is known after the lines up to `until`.
  struct Seen {
    std::optional<Position> first, where;
    std::optional<Eta> eta;
  };
  Seen ReadUntil(WallTime until) const {
    ProgressReader reader(stated_);
    ProgressTrack track;
    Seen seen;
    for (const std::string& line : lines_) {
      reader.Add(line);
      const auto where = reader.Where();
      if (where && where->time > until) break;
      seen.where = where;
      if (!seen.first || !seen.first->done || seen.first->done->least == 0) seen.first = where;
      if (where) track.Add(*where);
    }
    seen.eta = track.Ends();
    return seen;
  }

  const std::vector<std::string>& lines() const { return lines_; }
  bool redraws() const {
    return std::ranges::any_of(lines_, [](const std::string& line) { return line.find('\r') != std::string::npos; });
  }

 private:
  const StatedTotals stated_;
  std::vector<std::string> lines_;
};

// When it began, if what was done at its first line took as long as the same later.
WallTime BeginOf(const Position& first, WallTime end) {
  const double done = first.done ? first.done->least : 0;
  const std::chrono::duration<double> before = (end - first.time) * (done / (1 - std::min(done, 0.5)));
  return first.time - std::chrono::duration_cast<WallTime::duration>(before);
}

TEST(RecordedTrainings, EndWhenItIsSaid) {
  std::vector<double> off;
  int inside = 0;
  for (const Recorded& recorded : kWholeRuns) {
    const Training training(recorded);
    const auto whole = training.ReadUntil(WallTime::max());
    ASSERT_TRUE(whole.where) << recorded.name;
    const WallTime end = whole.where->time, begin = BeginOf(*whole.first, end);
    for (const double part : {0.25, 0.5, 0.75}) {
      const auto at = begin + std::chrono::duration_cast<WallTime::duration>((end - begin) * part);
      const auto seen = training.ReadUntil(at);
      if (!seen.eta) continue;
      const auto seconds = [](auto duration) { return std::chrono::duration<double>(duration).count(); };
      off.push_back(std::abs(seconds(seen.eta->expected - end)) / seconds(end - seen.where->time));
      const bool is_inside = seen.eta->earliest <= end && end <= seen.eta->latest;
      inside += is_inside ? 1 : 0;
      std::printf("%-18s %.2f  off %3.0f %% %s\n", recorded.name, part, 100 * off.back(), is_inside ? "" : "OUT");
    }
  }
  std::ranges::sort(off);
  const auto answers = static_cast<int>(off.size());
  std::printf("%d answers: off %.0f %% at the median, %.0f %% for nine of ten; %d in the interval\n", answers,
              100 * off[off.size() / 2], 100 * off[off.size() * 9 / 10], inside);
  EXPECT_GE(answers, 40);
  EXPECT_LE(off[off.size() / 2], 0.1);
  EXPECT_LE(off[off.size() * 9 / 10], 0.25);
  EXPECT_GE(inside * 100, answers * 85);
}

// None is better than a wrong one. Not those that redraw a line: all that it shows has the time of its beginning.
TEST(RecordedTrainings, NoneIsSaidToBeFurtherThanItIs) {
  int asked = 0;
  for (const Recorded& recorded : kWholeRuns) {
    const Training training(recorded);
    if (training.redraws()) continue;
    const auto whole = training.ReadUntil(WallTime::max());
    ASSERT_TRUE(whole.where) << recorded.name;
    const WallTime end = whole.where->time, begin = BeginOf(*whole.first, end);
    ProgressReader reader({.epochs = recorded.epochs});
    int lines = 0;
    for (const std::string& line : training.lines()) {
      if (++lines % 20 == 0) reader.Resume();  // A new stream, as after each look.
      reader.Add(line);
      const auto where = reader.Where();
      if (!where || !where->done) continue;
      ++asked;
      const double share = std::chrono::duration<double>(where->time - begin) / (end - begin);
      ASSERT_LE(where->done->least, std::max(share, 0.0) + 0.1) << recorded.name << ": " << line;
    }
  }
  EXPECT_GT(asked, 300);
}

}  // namespace
}  // namespace grus
