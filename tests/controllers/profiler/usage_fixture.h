// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/testing/fake_transport.h"
#include "controllers/cluster/owners.h"
#include "controllers/profiler/usage_watch.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus::testing {

inline constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";

// What the API server is asked for, and refusals of it.
class Tap final : public kube::Transport {
 public:
  explicit Tap(kube::Transport& to) : to_(to) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    requests_.push_back(request);
    if (request.method == "PATCH" && refusal_) return *refusal_;
    return to_.Send(request, std::move(stop));
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return to_.Open(request, std::move(stop));
  }
  int Count(const std::string& method, const std::string& target_prefix = "/") const {
    return static_cast<int>(std::ranges::count_if(requests_, [&](const kube::HttpRequest& request) {
      return request.method == method && request.target.starts_with(target_prefix);
    }));
  }
  void Refuse(std::optional<kube::Result<kube::HttpResponse>> refusal) { refusal_ = std::move(refusal); }

 private:
  kube::Transport& to_;
  std::vector<kube::HttpRequest> requests_;
  std::optional<kube::Result<kube::HttpResponse>> refusal_;
};

// Pods with GPUs against an API server in this process; the test plays the kubelet and Prometheus.
class UsageFixture : public ReconcilerFixture {
 protected:
  explicit UsageFixture(UsageSource source = {.url = "http://p:9090"}) : source_(std::move(source)) {}

  void SetUp() override {
    ReconcilerFixture::SetUp();
    Edit("nodes", {"", "n1"}, [](kube::Json& node) { node["metadata"]["labels"][kGpuProductLabel] = "A100"; });
    network_.Handle("POST", "/api/v1/query_range",
                    [this](const kube::HttpRequest& request, const std::stop_token&) { return Range(request.body); });
    network_.Handle("GET", "/", [this](const kube::HttpRequest& request, const std::stop_token&) {
      return Answer(request.target);
    });
  }

  kube::Result<kube::HttpResponse> Answer(const std::string& target) {
    ++queries_;
    clock_.Advance(slowness_);
    if (is_down_) return kube::Error(kube::ErrorCode::kUnavailable, "nobody answers");
    std::string rows;
    for (const auto& [part, given] : rows_) {
      if (target.find(part) != std::string::npos) {
        return kube::HttpResponse{
            200, {}, R"({"status":"success","data":{"resultType":"vector","result":[)" + given + "]}}"};
      }
    }
    const bool is_utilization =
        target.find("avg%20by") != std::string::npos && target.find("GPU_UTIL") != std::string::npos;
    const bool is_memory = target.find("FB_USED") != std::string::npos;
    for (const auto& [pod, percent] : utilization_) {
      if (!is_utilization && !is_memory) break;
      rows += std::string(rows.empty() ? "" : ",") + R"({"metric":{"namespace":"team-a","pod":")" + pod +
              R"("},"value":[1,")" + std::to_string(is_memory ? percent * 100 : percent) + "\"]}";
    }
    return kube::HttpResponse{
        200, {}, R"({"status":"success","data":{"resultType":"vector","result":[)" + rows + "]}}"};
  }

  // GPUs that are busy, most of all with their memory, since the time that is asked for.
  kube::Result<kube::HttpResponse> Range(const std::string& form) {
    ++looks_;
    if (is_down_) return kube::Error(kube::ErrorCode::kUnavailable, "nobody answers");
    const auto number = [&](const std::string& name) {
      return std::stoll(form.substr(form.find("&" + name + "=") + name.size() + 2));
    };
    std::string series;
    if (is_range_empty_)
      return kube::HttpResponse{200, {}, R"({"status":"success","data":{"resultType":"matrix","result":[]}})"};
    for (const auto& [name, percent] : {std::pair("gpu", 97), {"bandwidth", 85}}) {
      std::string values;
      for (auto at = number("start"); at <= number("end"); at += number("step")) {
        values += (values.empty() ? "[" : ",[") + std::to_string(at) + ",\"" + std::to_string(percent) + "\"]";
      }
      series += (series.empty() ? "" : ",") + (R"({"metric":{"series":")" + std::string(name) + R"("},"values":[)") +
                values + "]}";
    }
    return kube::HttpResponse{
        200, {}, R"({"status":"success","data":{"resultType":"matrix","result":[)" + series + "]}}"};
  }

  void AddPod(const std::string& name, const std::string& owner_kind, const std::string& owner,
              const std::string& owner_uid, int gpus = 2) {
    kube::Json pod = Named("v1", "Pod", name, namespace_.c_str());
    if (!owner.empty()) {
      pod["metadata"]["ownerReferences"] =
          *kube::ParseJson(R"([{"apiVersion":")" + api_version_ + R"(","kind":")" + owner_kind + R"(","name":")" +
                           owner + R"(","uid":")" + owner_uid + R"(","controller":true}])");
    }
    pod["spec"] = *kube::ParseJson(
        R"({"nodeName":"n1","containers":[{"name":"c","image":"train:1","command":["python","train.py"],"resources":)"
        R"({"requests":{"nvidia.com/gpu":")" +
        std::to_string(gpus) + R"("},"limits":{"nvidia.com/gpu":")" + std::to_string(gpus) + R"("}}}]})");
    Create("pods", std::move(pod));
    SetPhase(name, first_phase_);
  }
  void SetPhase(const std::string& pod, const std::string& phase) {
    SetStatus("pods", {namespace_, pod},
              R"({"phase":")" + phase + R"(","startTime":")" + kube::ToText(kube::Time{clock_.WallNow()}) + R"("})");
  }

  // Without its kubelet's consent.
  void Bury(const std::string& pod) {
    ASSERT_TRUE(server_.Delete("pods", {"team-a", pod}, kube::Json::MakeObject({{"gracePeriodSeconds", 0}})));
  }

  // Finds out whose pods there are, as the queue would.
  void Resolve(const std::string& owner_uid) {
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto resolved = watch_.Reconcile({namespace_, namespace_ + "/" + owner_uid}, {});
    ASSERT_TRUE(resolved) << resolved.error().message();
  }
  // One sweep, a minute after the last one, and all its writes.
  void Sweep() {
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    clock_.Advance(std::chrono::seconds(60));
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
      const auto action = watch_.Reconcile(UsageWatch::Sweep(), {});
      ASSERT_TRUE(action) << action.error().message();
      if (*action->delay() > std::chrono::seconds(10)) break;
      clock_.Advance(*action->delay());
    }
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    for (auto more = watch_.Reconcile(UsageWatch::Look(), {}); more && more->delay();) {
      more = watch_.Reconcile(UsageWatch::Look(), {});
    }
  }
  std::vector<api::WorkloadRun> Runs() {
    std::vector<api::WorkloadRun> runs;
    for (const auto& profile : profiles_.List<api::WorkloadProfile>()) {
      runs.insert(runs.end(), profile->spec.runs.begin(), profile->spec.runs.end());
    }
    return runs;
  }

  std::map<std::string, int> utilization_;                      // Percent, by pod.
  std::map<std::string, std::string> rows_;                     // Of the queries with a part, as URLs have it.
  std::string api_version_ = "kubeflow.org/v1";                 // Of the owners of new pods.
  std::string namespace_ = "team-a", first_phase_ = "Running";  // Of new pods.
  std::chrono::nanoseconds slowness_{0};                        // Of each answer.
  bool is_down_ = false, is_range_empty_ = false;
  int queries_ = 0, looks_ = 0;
  kube::testing::FakeTransport network_{clock_};
  Prometheus prometheus_{[this](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
                           return std::shared_ptr<kube::Transport>(&network_, [](kube::Transport*) {});
                         },
                         clock_,
                         {"http://p:9090"}};
  kube::WorkQueue queue_{clock_};
  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  ProfileStore store_{client_, profiles_, clock_};
  const UsageSource source_;
  Tap tap_{server_};
  kube::Client tapped_{tap_, nullptr, clock_};
  UsageWatch watch_{tapped_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, source_, clock_, log_};

  void Start() {
    watch_.FeedQueue(queue_);
    StartCaches();
    ASSERT_TRUE(watch_.Reconcile(UsageWatch::Sweep(), {}));  // It leads from now on.
  }
};

}  // namespace grus::testing
