// SPDX-License-Identifier: Apache-2.0
#include "bench/queues/scenarios.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "bench/measure.h"
#include "bench/queues/side_run.h"
#include "clientlib/model/core_v1.h"

namespace bench {
namespace {

using std::chrono::duration;
constexpr double kLimitSeconds = 120;  // Of each wait.
constexpr double kFull = 0.95;         // Of the GPUs: a part of a node can be left for which no job is small enough.
constexpr char kBigGang[] = "big-gang";

kube::Duration Time(double seconds) { return std::chrono::duration_cast<kube::Duration>(duration<double>(seconds)); }

// Submits jobs when they are due, and ends those whose work is done.
class Player {
 public:
  Player(const MixWorld& world, const MixSide& side) : world_(world), side_(side), teams_(TeamsOf(world.gpus)) {}

  // Their times count from now on.
  void Add(std::vector<MixJob> jobs) {
    const double now = SecondsSince(start_, world_.clock);
    for (MixJob& job : jobs) {
      if (!side_.is_elastic) job.min_workers = job.max_workers = job.workers;
      job.has_launcher = job.job_class != MixClass::kGang || side_.gangs_have_launchers;
      job.submitted_at += now;
      waiting_.push_back(std::move(job));
    }
    std::ranges::stable_sort(waiting_, {}, &MixJob::submitted_at);
  }
  bool IsAllSubmitted() const { return waiting_.empty(); }

  // Until `reached`. False at the limit, or after an error, of which a message tells.
  bool Play(
      double limit_seconds, const std::function<bool()>& reached = [] { return false; }) {
    const kube::TimePoint until = world_.clock.Now() + Time(limit_seconds);
    while (SubmitWhatIsDue() && End(world_.watch.TakeFinished())) {
      if (reached()) return true;
      if (world_.clock.Now() >= until) return false;
      kube::TimePoint due = std::min(until, world_.watch.NextFinish());
      if (!waiting_.empty()) due = std::min(due, start_ + Time(waiting_.front().submitted_at));
      (void)world_.watch.Await([&] { return reached() || world_.watch.NextFinish() < due - Time(0.02); }, due);
    }
    return false;
  }

 private:
  bool SubmitWhatIsDue() {
    const double now = SecondsSince(start_, world_.clock);
    const auto later = std::ranges::find_if(waiting_, [&](const MixJob& job) { return job.submitted_at > now; });
    const std::vector<MixJob> due(waiting_.begin(), later);
    waiting_.erase(waiting_.begin(), later);
    return InParallel(static_cast<int>(due.size()), world_.threads, [&](int i) {
      const MixJob& job = due[static_cast<std::size_t>(i)];
      world_.watch.Submit(job);
      return side_.create(world_.client, teams_[static_cast<std::size_t>(job.team)].name, job);
    });
  }

  bool End(const std::vector<kube::ObjectKey>& pods) {
    kube::Json patch = kube::Json::MakeObject();
    patch["metadata"]["annotations"]["grus.test/outcome"] = "succeed";
    return InParallel(static_cast<int>(pods.size()), world_.threads, [&](int i) -> kube::Status {
      auto patched = world_.client.Patch(kube::KindOf<kube::Pod>(), pods[static_cast<std::size_t>(i)],
                                         kube::PatchType::kMerge, patch);
      if (!patched && patched.error().code() != kube::ErrorCode::kNotFound) return std::move(patched).error();
      return {};
    });
  }

  const MixWorld& world_;
  const MixSide& side_;
  const std::vector<Team> teams_;
  const kube::TimePoint start_ = world_.clock.Now();
  std::vector<MixJob> waiting_;  // By time.
};

// 1: each has the same part of what is guaranteed to it.
double Jain(const std::vector<double>& held, const std::vector<Team>& teams) {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < teams.size(); ++i) {
    const double part = held[i] / teams[i].guaranteed;
    sum += part;
    squares += part * part;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(teams.size()) * squares) : 0;
}

void AddTotals(const MixWorld& world, const SideRun& run, MixFigures& figures) {
  const MixTotals totals = world.watch.Totals();
  figures.emplace_back("GPUs in use, mean %", 100 * totals.held / (world.gpus * totals.seconds));
  figures.emplace_back("GPU s idle while a job waited that fits", totals.idle_wanted);
  figures.emplace_back("GPU s of training thrown away", totals.thrown_away);
  figures.emplace_back("jobs stopped for others", totals.stops);
  figures.emplace_back("shrinks of jobs, in workers", totals.shrinks);
  if (const double jain = Jain(totals.held_by_team, TeamsOf(world.gpus)); jain > 0) {
    figures.emplace_back("Jain over teams, while all have enough jobs", jain);
  }
  if (const std::vector<double> starts = world.watch.StartsOf(MixClass::kInteractive); !starts.empty()) {
    figures.emplace_back("Interactive: start p50, s", Percentile(starts, 0.5));
    figures.emplace_back("Interactive: start p99, s", Percentile(starts, 0.99));
  }
  figures.emplace_back("CPU of its programs, s", run.CpuSeconds());
  figures.emplace_back("peak memory of its programs, MiB", run.PeakMemoryMib());
}

// Seconds until `reached`; the limit, with a message, if it is not.
bool AddTime(const MixWorld& world, Player& player, const std::string& what, const std::function<bool()>& reached,
             MixFigures& figures, double limit = kLimitSeconds) {
  const kube::TimePoint start = world.clock.Now();
  const bool is_reached = player.Play(limit, reached);
  figures.emplace_back(what + ", s", SecondsSince(start, world.clock));
  if (!is_reached) std::fprintf(stderr, "%s: not within %.0f s\n", what.c_str(), limit);
  return is_reached;
}

bool Fill(const MixWorld& world, Player& player, MixFigures& figures) {
  player.Add(DrawCrowd(world.gpus, world.seed));
  const bool is_full = AddTime(
      world, player, "until 95 % of the GPUs are bound", [&] { return world.watch.Held() >= kFull * world.gpus; },
      figures);
  player.Play(10);
  figures.emplace_back("GPUs bound 10 s later, %", 100.0 * world.watch.Held() / world.gpus);
  return is_full;
}

bool Reclaim(const MixWorld& world, Player& player, MixFigures& figures) {
  player.Add(DrawBorrowers(world.gpus, world.seed));
  bool is_ok = AddTime(
      world, player, "until one team has borrowed 95 % of the GPUs",
      [&] { return world.watch.Held() >= kFull * world.gpus; }, figures);
  player.Play(12);  // Of training that could be lost.
  const std::vector<Team> teams = TeamsOf(world.gpus);
  for (int team = 1; team < static_cast<int>(teams.size()); ++team) {
    const Team& asking = teams[static_cast<std::size_t>(team)];
    player.Add(MakeAsk(asking, team));
    is_ok = AddTime(
                world, player, asking.name + " asks: until its guarantee is bound",
                [&] { return world.watch.HeldBy(team) >= asking.guaranteed; }, figures) &&
            is_ok;
  }
  return is_ok;
}

bool BigGang(const MixWorld& world, Player& player, MixFigures& figures) {
  MixJob big;
  big.name = kBigGang;
  big.job_class = MixClass::kGang;
  big.gpus = 8;
  big.workers = big.min_workers = big.max_workers = std::max(1, world.gpus / 4 / big.gpus);
  big.run_seconds = 20;
  player.Add(DrawSmallJobs(world.gpus, kLimitSeconds, world.seed));
  player.Play(20);
  player.Add({big});
  return AddTime(
      world, player, "a gang of a quarter of the cluster: until it runs",
      [&] { return world.watch.SecondsToStart(kBigGang).has_value(); }, figures, kLimitSeconds - 20);
}

bool Day(const MixWorld& world, Player& player, MixFigures& figures) {
  player.Add(DrawDay(world.gpus, world.day_seconds, world.seed));
  const auto is_over = [&] { return player.IsAllSubmitted() && world.watch.Unfinished() == 0; };
  return AddTime(world, player, "until all jobs have ended", is_over, figures, 3 * world.day_seconds);
}

struct Scenario {
  const char* name;
  bool (*play)(const MixWorld&, Player&, MixFigures&);
};
constexpr Scenario kScenarios[] = {{"fill", Fill}, {"reclaim", Reclaim}, {"big-gang", BigGang}, {"day", Day}};

}  // namespace

std::vector<std::string> MixScenarios() {
  std::vector<std::string> names;
  for (const Scenario& scenario : kScenarios) names.emplace_back(scenario.name);
  return names;
}

bool RunMixScenario(const MixWorld& world, const MixSide& side, const std::string& scenario, MixFigures& figures) {
  const auto* const found = std::ranges::find(kScenarios, scenario, &Scenario::name);
  SideRun run(world, side, scenario);
  if (!run.SetUp()) return false;
  world.watch.Begin(TeamsOf(world.gpus), world.gpus);
  run.MeasureFromHere();
  Player player(world, side);
  bool is_ok = found->play(world, player, figures);
  AddTotals(world, run, figures);
  is_ok = run.TearDown() && is_ok;
  return is_ok;
}

}  // namespace bench
