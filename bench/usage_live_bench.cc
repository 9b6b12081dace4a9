// SPDX-License-Identifier: Apache-2.0
// What the profiler records on a real control plane from a real Prometheus, and what it costs.
//
// Usage: usage_live_bench KUBECONFIG GRUS_MANAGER PROMETHEUS [--jobs N] [--minutes N] [--scrape-seconds N]
//                         [--vanishing N]
// Jobs of 8 pods, one GPU each, run on kwok's nodes, a pod's GPU on "node-<pod / 8>"; a UsagePlayer plays their
// exporters. Two grus-managers run the controllers trial and profiler, so that both know the jobs and the profiles, one
// of them with Prometheus. After the minutes some of the jobs vanish with their pods, others live for two scrapes, and
// each must have one record with its exact maxima. Exit status 1: one has not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "bench/manager_run.h"
#include "bench/measure.h"
#include "bench/storm.h"
#include "bench/usage_player.h"
#include "clientlib/client/connection.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "crds/types/workload_profile.h"
#include "tests/kit/objects.h"
#include "tests/kit/pods.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

constexpr int kPodsOfJob = 8, kThreads = 8, kNamespaces = 10, kShortJobs = 20;
constexpr kube::Duration kLook = std::chrono::seconds(1);

struct LiveUsage {
  std::string kubeconfig, manager, prometheus;
  int jobs = 400, minutes = 6, scrape_seconds = 15;
  int vanishing = 200;  // Jobs, beside those that live for two scrapes; 0: neither.
};

struct Vanishing {
  std::size_t place;  // In the player.
  kube::ObjectKey job;
};

class UsageLive {
 public:
  UsageLive(const LiveUsage& options, kube::Client& client, const kube::Clock& clock, const kube::Log& log)
      : options_(options),
        client_(client),
        clock_(clock),
        observer_(client, clock, log, {&KindOf<kube::Pod>(), &KindOf<api::WorkloadProfile>()}) {}

  int Run() {
    if (!Prepare()) return 1;
    if (!MakeJobs(0, options_.jobs, "train")) return 1;
    kit::ChildProcess prometheus(PrometheusWords(), {}, "build/usage-live-prometheus.log");
    ManagerRun plain(options_.manager, Arguments(), "build/usage-live-plain.log", clock_);
    std::vector<std::string> with = Arguments();
    with.insert(with.end(), {"--usage-prometheus", "http://127.0.0.1:" + std::to_string(port_)});
    ManagerRun profiler(options_.manager, with, "build/usage-live-profiler.log", clock_);
    const kube::TimePoint limit = clock_.Now() + std::chrono::minutes(3);
    if (!plain.WaitUntilReady(limit) || !profiler.WaitUntilReady(limit)) return 1;
    Measure(plain, profiler);
    return options_.vanishing == 0 || CheckRecords() ? 0 : 1;
  }

 private:
  std::vector<std::string> Arguments() const {
    return {"--kubeconfig", options_.kubeconfig, "--controllers", "trial,profiler", "--log-level", "info"};
  }

  bool Prepare() {
    auto player = UsagePlayer::Start();
    if (!player) return Fail(player.error());
    player_ = *std::move(player);
    if (const kube::Status started = observer_.Start([](const kube::Kind&, const kube::Change&) {}); !started) {
      return Fail(started.error());
    }
    for (int ns = 0; ns < kNamespaces; ++ns) {
      if (!CreateNamespace(client_, "team-" + std::to_string(ns))) return false;
    }
    return true;
  }

  std::vector<std::string> PrometheusWords() {
    port_ = 20000 + player_->port() % 10000;
    std::ofstream("build/usage-live-prometheus.yml")
        << "global: {scrape_interval: " << options_.scrape_seconds << "s, scrape_timeout: " << options_.scrape_seconds
        << "s}\nscrape_configs:\n  - job_name: exporters\n    honor_labels: true\n    static_configs: [{targets: "
        << "[\"127.0.0.1:" << player_->port() << "\"]}]\n";
    std::filesystem::remove_all("build/usage-live-tsdb");
    return {options_.prometheus, "--config.file=build/usage-live-prometheus.yml",
            "--storage.tsdb.path=build/usage-live-tsdb", "--web.listen-address=127.0.0.1:" + std::to_string(port_)};
  }

  static kube::ObjectKey JobKey(int job, const std::string& name) {
    return {"team-" + std::to_string(job % kNamespaces), name + "-" + std::to_string(job)};
  }
  static kube::ObjectKey PodKey(const kube::ObjectKey& job, int pod) {
    return {job.ns, job.name + "-worker-" + std::to_string(pod)};
  }

  kube::Status MakeJob(int number, const std::string& name) {
    const kube::ObjectKey key = JobKey(number, name);
    api::ElasticHorovodJob job = bench::MakeJob(key.ns, 0, {.workers = kPodsOfJob, .min_workers = kPodsOfJob});
    job.metadata.name = key.name;
    job.spec.launcher.python_command.push_back("--model=" + key.name);  // Each is a workload of its own.
    auto json = kube::ParseJson(kube::EncodeObject(KindOf<api::ElasticHorovodJob>(), job));
    if (!json) return std::move(json).error();
    json->Erase("status");
    auto made = client_.Create(KindOf<api::ElasticHorovodJob>(), key.ns, *json);
    if (!made) return std::move(made).error();
    for (int pod = 0; pod < kPodsOfJob; ++pod) {
      const kube::ObjectKey pod_key = PodKey(key, pod);
      Json labels = Json::MakeObject({{grus::kJobNameLabel, key.name}, {grus::kRoleLabel, "worker"}});
      Json object = kit::MakePod(pod_key.name, kit::PodSpec(1), std::move(labels));
      object["spec"]["nodeName"] = "node-" + std::to_string(number);
      Json owner = Json::MakeObject({{"apiVersion", KindOf<api::ElasticHorovodJob>().ApiVersion()},
                                     {"kind", "ElasticHorovodJob"},
                                     {"name", key.name},
                                     {"uid", (*made)->metadata.uid},
                                     {"controller", true}});
      object["metadata"]["ownerReferences"] = Json::MakeArray({std::move(owner)});
      auto created = client_.Create(KindOf<kube::Pod>(), pod_key.ns, object);
      if (!created) return std::move(created).error();
    }
    return {};
  }

  // And waits until all their pods run, and plays them from then on.
  bool MakeJobs(int first, int count, const std::string& name) {
    if (!InParallel(count, kThreads, [&](int at) { return MakeJob(first + at, name); })) return false;
    const auto runs = [&](const kube::ObjectKey& key) {
      const auto pod = observer_.Of(KindOf<kube::Pod>()).Get<kube::Pod>(key);
      return pod && pod->status.phase.view() == "Running";
    };
    int running = 0;  // Those before it run.
    const bool all_run = observer_.Await(
        [&] {
          while (running < count * kPodsOfJob &&
                 runs(PodKey(JobKey(first + running / kPodsOfJob, name), running % kPodsOfJob))) {
            ++running;
          }
          return running == count * kPodsOfJob;
        },
        clock_.Now() + std::chrono::minutes(20));
    if (!all_run) {
      std::fprintf(stderr, "only %d pods of %d run\n", running, count * kPodsOfJob);
      return false;
    }
    for (int at = 0; at < count; ++at) {
      std::vector<kube::ObjectKey> pods;
      for (int pod = 0; pod < kPodsOfJob; ++pod) pods.push_back(PodKey(JobKey(first + at, name), pod));
      player_->Add(std::move(pods));
    }
    return true;
  }

  double QueriesAsked() const {
    double asked = 0;
    for (const std::string& line : ReadProgramMetrics(port_, "prometheus_http_requests_total")) {
      if (line.find("/api/v1/query") != std::string::npos) asked += MetricValue(line);
    }
    return asked;
  }

  void Measure(ManagerRun& plain, ManagerRun& profiler) {
    LetPass(std::chrono::minutes(2), clock_);  // Each has seen all pods, and swept once.
    const double cpu_plain = plain.process().CpuSeconds(), cpu_profiler = profiler.process().CpuSeconds();
    const double asked = QueriesAsked();
    const kube::TimePoint began = clock_.Now(), until = began + std::chrono::minutes(options_.minutes);
    double most_writes = 0, most_memory = 0;
    kube::TimePoint looked = began;
    for (double before = profiler.Counters().writes; clock_.Now() < until;) {
      LetPass(kLook, clock_);
      const double now = profiler.Counters().writes, passed = SecondsSince(std::exchange(looked, clock_.Now()), clock_);
      most_writes = std::max(most_writes, (now - before) / std::max(passed, 1.0));
      before = now;
      most_memory = std::max(most_memory, profiler.process().MemoryMib() - plain.process().MemoryMib());
    }
    const double seconds = SecondsSince(began, clock_);
    PrintRow("pods with GPUs", options_.jobs * kPodsOfJob, "");
    PrintRow("memory of a manager without", plain.process().MemoryMib(), "MiB");
    PrintRow("memory above it, the most", most_memory, "MiB", 48);
    PrintRow("peak memory of both, apart", profiler.process().PeakMemoryMib() - plain.process().PeakMemoryMib(), "MiB");
    PrintRow("cores above it",
             (profiler.process().CpuSeconds() - cpu_profiler - (plain.process().CpuSeconds() - cpu_plain)) / seconds,
             "", 0.1);
    PrintRow("queries a minute", (QueriesAsked() - asked) * 60 / seconds, "", 15);
    PrintRow("writes in a second, the most", most_writes, "", 10);
  }

  // Pods and job at once.
  kube::Status Vanish(const Vanishing& vanishing) {
    player_->Remove(vanishing.place);
    const kube::DeleteOptions at_once{.grace_period_seconds = 0};
    const kube::Status job = client_.Delete(KindOf<api::ElasticHorovodJob>(), vanishing.job, at_once);
    if (!job) return job;
    for (int pod = 0; pod < kPodsOfJob; ++pod) {
      const kube::Status gone = client_.Delete(KindOf<kube::Pod>(), PodKey(vanishing.job, pod), at_once);
      if (!gone && gone.error().code() != kube::ErrorCode::kNotFound) return gone;
    }
    return {};
  }

  bool CheckRecords() {
    if (!MakeJobs(options_.jobs, kShortJobs, "short")) return false;
    std::vector<Vanishing> vanishing;
    for (int at = 0; at < kShortJobs; ++at) {
      const int job = options_.jobs + at;
      vanishing.push_back({static_cast<std::size_t>(job), JobKey(job, "short")});
    }
    const int scrapes = player_->scrapes();
    while (player_->scrapes() < scrapes + 2) LetPass(kLook, clock_);
    for (int job = 0; job < options_.jobs && job < 2 * options_.vanishing; job += 2) {
      vanishing.push_back({static_cast<std::size_t>(job), JobKey(job, "train")});
    }
    const auto vanish = [&](int at) { return Vanish(vanishing[static_cast<std::size_t>(at)]); };
    if (!InParallel(static_cast<int>(vanishing.size()), kThreads, vanish)) return false;
    const kube::TimePoint gone = clock_.Now();
    const bool all_ended = observer_.Await([&] { return CountRecords(vanishing).ended == vanishing.size(); },
                                           gone + std::chrono::minutes(4) + std::chrono::seconds(vanishing.size() / 4));
    const Records records = CountRecords(vanishing);
    std::printf("%zu of %zu jobs that vanished have an ended record, after %.0f s; %zu with exact maxima; %zu twice\n",
                records.ended, vanishing.size(), SecondsSince(gone, clock_), records.exact, records.twice);
    return all_ended && records.exact == vanishing.size() && records.twice == 0;
  }

  struct Records {
    std::size_t ended = 0, exact = 0, twice = 0;
  };
  Records CountRecords(const std::vector<Vanishing>& vanishing) {
    std::map<std::string, std::vector<api::WorkloadRun>> runs;
    for (const auto& profile : observer_.Of(KindOf<api::WorkloadProfile>()).List<api::WorkloadProfile>()) {
      for (const api::WorkloadRun& run : profile->spec.runs) runs[run.job].push_back(run);
    }
    Records records;
    for (const Vanishing& one : vanishing) {
      const auto found = runs.find("ElasticHorovodJob/" + one.job.ToString());
      if (found == runs.end()) continue;
      if (found->second.size() > 1) ++records.twice;
      const api::WorkloadRun& run = found->second.front();
      if (!run.end) continue;
      ++records.ended;
      const UsagePlayer::Seen seen = player_->SeenOf(one.place);
      const bool is_exact = run.usage.max_gpu_utilization_percent == seen.most_utilization_percent &&
                            run.usage.max_gpu_memory_bytes == seen.most_memory_mib << 20;
      if (is_exact) ++records.exact;
      else if (records.ended == vanishing.size()) {
        std::fprintf(stderr, "%s: %d %% and %lld MiB recorded, %lld %% and %lld MiB scraped\n",
                     one.job.ToString().c_str(), run.usage.max_gpu_utilization_percent.value_or(-1),
                     static_cast<long long>(run.usage.max_gpu_memory_bytes.value_or(-1) >> 20),
                     static_cast<long long>(seen.most_utilization_percent),
                     static_cast<long long>(seen.most_memory_mib));
      }
    }
    return records;
  }

  static bool Fail(const kube::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return false;
  }

  const LiveUsage options_;
  kube::Client& client_;
  const kube::Clock& clock_;
  kit::Observer observer_;
  std::unique_ptr<UsagePlayer> player_;
  int port_ = 0;  // Of Prometheus.
};

bool Parse(int argc, char** argv, LiveUsage& options) {
  if (argc < 4) return false;
  options.kubeconfig = argv[1];
  options.manager = argv[2];
  options.prometheus = argv[3];
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const int value = std::atoi(argv[i + 1]);
    if (name == "--jobs") options.jobs = value;
    else if (name == "--minutes") options.minutes = value;
    else if (name == "--scrape-seconds") options.scrape_seconds = value;
    else if (name == "--vanishing") options.vanishing = value;
    else return false;
  }
  return argc % 2 == 0 && options.jobs > 0 && options.minutes > 0 && options.scrape_seconds > 0;
}

int Run(const LiveUsage& options) {
  const kube::SystemClock clock;
  const kube::Log log(kube::LogLevel::kWarn);
  auto connection = kube::Connect({.kubeconfig = options.kubeconfig, .user_agent = "usage_live_bench"}, clock);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().message().c_str());
    return 1;
  }
  return UsageLive(options, *(*connection)->client, clock, log).Run();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bench::LiveUsage options;
  if (bench::Parse(argc, argv, options)) return bench::Run(options);
  std::fprintf(stderr,
               "usage: usage_live_bench KUBECONFIG GRUS_MANAGER PROMETHEUS [--jobs N (400)] [--minutes N (6)]\n"
               "                        [--scrape-seconds N (15)] [--vanishing N (200)]\n");
  return 2;
}
