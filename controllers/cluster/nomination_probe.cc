// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/nomination_probe.h"

#include <algorithm>

#include "clientlib/base/wait.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/model/json.h"
#include "controllers/policy/node_match.h"

namespace grus {
namespace {

using kube::Json;
using kube::KindOf;

constexpr char kNominee[] = "grus-nomination-probe-held", kGuest[] = "grus-nomination-probe-guest";
constexpr char kProbeLabel[] = "ai.centauruscloud.io/nomination-probe";  // Also the name of the gate.
constexpr kube::Duration kLookEvery = std::chrono::milliseconds(250);
constexpr kube::Duration kPatience = std::chrono::seconds(20);
constexpr kube::Duration kNextTry = std::chrono::minutes(10);  // After a verdict other than yes.
// So many tries in a row must show that nominations are not honoured. One proves nothing: a scheduler that relists all
// pods just then, after a broken watch for example, may see the guest before the nominated pod.
constexpr int kTriesForNo = 3;

Json ProbePod(const std::string& ns, const std::string& name, std::string_view role) {
  // Should it ever run, it prints its version and ends.
  Json pod = *kube::ParseJson(R"({"apiVersion":"v1","kind":"Pod","metadata":{},
      "spec":{"restartPolicy":"Never","automountServiceAccountToken":false,"enableServiceLinks":false,
              "terminationGracePeriodSeconds":0,
              "securityContext":{"runAsNonRoot":true,"runAsUser":65532,"seccompProfile":{"type":"RuntimeDefault"}},
              "containers":[{"name":"probe","image":"registry.k8s.io/pause:3.10","command":["/pause","-v"],
                             "securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,
                                                "capabilities":{"drop":["ALL"]}}}]}})");
  pod["metadata"]["name"] = name;
  pod["metadata"]["namespace"] = ns;
  pod["metadata"]["labels"][kProbeLabel] = role;
  return pod;
}

}  // namespace

Json NominatedProbePod(const std::string& ns) {
  Json pod = ProbePod(ns, kNominee, "held");
  pod["spec"]["schedulingGates"].Append(Json::MakeObject({{"name", kProbeLabel}}));
  return pod;
}

Json GuestProbePod(const std::string& ns, const std::string& node) {
  Json pod = ProbePod(ns, kGuest, "guest");
  Json& spec = pod["spec"];
  spec["tolerations"] = *kube::ParseJson(R"([{"operator":"Exists"}])");
  spec["affinity"] = *kube::ParseJson(R"({"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
      {"topologyKey":"kubernetes.io/hostname",
       "labelSelector":{"matchLabels":{"ai.centauruscloud.io/nomination-probe":"held"}}}]}})");
  Json is_node =
      Json::MakeObject({{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::MakeArray({Json(node)})}});
  Json& wanted = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  wanted["nodeSelectorTerms"].Append(Json::MakeObject({{"matchFields", Json::MakeArray({std::move(is_node)})}}));
  return pod;
}

std::optional<ProbeVerdict> JudgeProbe(const kube::Pod& guest) {
  if (!guest.spec.node_name.empty()) {
    return ProbeVerdict{Honoured::kNo, "a pod was bound where another was nominated"};
  }
  const auto* unschedulable = kube::FindUnschedulable(guest);
  if (!unschedulable) return std::nullopt;
  const std::string said(unschedulable->message);
  if (said.find("anti-affinity") != std::string::npos) return ProbeVerdict{Honoured::kYes, said};
  return ProbeVerdict{Honoured::kUnknown, "the scheduler says: " + said};
}

NominationProbe::NominationProbe(kube::Client& client, std::string ns, kube::Informer& nodes,
                                 std::function<void(const ProbeVerdict&)> tell, const kube::Clock& clock)
    : client_(client), ns_(std::move(ns)), nodes_(nodes), tell_(std::move(tell)), clock_(clock) {}

void NominationProbe::FeedQueue(kube::WorkQueue& queue, LeaseWatch& scheduler) {
  const kube::ObjectKey key{ns_, kNominee};
  queue.Add(key);
  scheduler.OnChange([&queue, &scheduler, key] {
    if (!scheduler.holder().empty()) queue.Add(key);
  });
}

std::string NominationProbe::ChooseNode() const {
  for (const auto& node : nodes_.List<kube::Node>()) {
    const bool is_open = !node->spec.unschedulable && node->spec.taints.empty() && !node->metadata.is_being_deleted() &&
                         kube::IsConditionTrue(node->status.conditions, "Ready") &&
                         !node->metadata.Label(kHostnameLabel).empty();
    if (is_open) return node->metadata.name;
  }
  return {};
}

kube::Status NominationProbe::CleanUp(std::stop_token stop) {
  for (const char* name : {kGuest, kNominee}) {
    kube::DeleteOptions options;
    options.grace_period_seconds = 0;
    if (kube::Status gone = client_.Delete(KindOf<kube::Pod>(), {ns_, name}, options, stop); !gone) {
      return std::move(gone).error().with("delete Pod " + ns_ + "/" + name);
    }
  }
  return {};
}

kube::Result<ProbeVerdict> NominationProbe::Try(const std::string& node, std::stop_token stop) {
  if (auto nominee = client_.Create(KindOf<kube::Pod>(), ns_, NominatedProbePod(ns_), {}, stop); !nominee) {
    return std::move(nominee).error().with("create a Pod in " + ns_);
  }
  kube::WriteOptions options;
  options.subresource = "status";
  Json patch = Json::MakeObject();
  patch["status"]["nominatedNodeName"] = node;
  const kube::ObjectKey nominee{ns_, kNominee};
  const auto nominated = client_.Patch(KindOf<kube::Pod>(), nominee, kube::PatchType::kMerge, patch, options, stop);
  if (!nominated) return kube::Error(nominated.error()).with("nominate a Pod in " + ns_);
  if (static_cast<const kube::Pod&>(**nominated).status.nominated_node_name != node) {
    return ProbeVerdict{Honoured::kNo, "the API server drops status.nominatedNodeName"};
  }
  if (auto guest = client_.Create(KindOf<kube::Pod>(), ns_, GuestProbePod(ns_, node), {}, stop); !guest) {
    return std::move(guest).error().with("create a Pod in " + ns_);
  }
  for (const kube::TimePoint until = clock_.Now() + kPatience; clock_.Now() < until;) {
    if (!kube::WaitFor(clock_, kLookEvery, stop)) break;
    const auto guest = client_.Get<kube::Pod>({ns_, kGuest}, stop);
    if (!guest) return kube::Error(guest.error()).with("get a Pod in " + ns_);
    if (const auto verdict = JudgeProbe(**guest)) return *verdict;
  }
  return ProbeVerdict{Honoured::kUnknown, "the scheduler did not decide in time"};
}

kube::Result<kube::Action> NominationProbe::Reconcile(const kube::ObjectKey&, std::stop_token stop) {
  ProbeVerdict verdict{Honoured::kUnknown, "no node is ready and open to pods"};
  const std::string node = ChooseNode();
  if (kube::Status is_clean = CleanUp(stop); !is_clean) {
    verdict.why = is_clean.error().message();
  } else if (!node.empty()) {
    for (int i = 0; i < kTriesForNo && !stop.stop_requested(); ++i) {
      kube::Result<ProbeVerdict> tried = Try(node, stop);
      verdict = tried ? *std::move(tried) : ProbeVerdict{Honoured::kUnknown, tried.error().message()};
      (void)CleanUp({});  // Also after a stop. If it fails, the next try deletes them.
      if (verdict.honoured != Honoured::kNo) break;
    }
  }
  if (stop.stop_requested()) return kube::Action::AwaitChange();
  tell_(verdict);
  return verdict.honoured == Honoured::kYes ? kube::Action::AwaitChange() : kube::Action::After(kNextTry);
}

}  // namespace grus
