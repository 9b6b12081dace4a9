// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/ungate.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <sstream>

#include "clientlib/base/printable.h"
#include "clientlib/model/pod.h"
#include "controllers/kubectl/table.h"
#include "controllers/queues/wording.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

using kube::Json;
using kube::KindOf;

constexpr int kPage = 500;

GatedPod Read(const kube::Pod& pod) {
  GatedPod gated{pod.metadata.Key(), std::string(pod.metadata.uid), {}, {}, {}};
  for (const kube::PodSchedulingGate& gate : pod.spec.scheduling_gates) {
    if (gate.name == api::kGangGate) gated.gates.emplace_back(gate.name);
    else gated.has_foreign_gate = true;
  }
  for (const char* label : {api::kPodGroupLabel, api::kLegacyPodGroupLabel}) {
    if (gated.group.empty()) gated.group = pod.metadata.Label(label);
  }
  if (const kube::OwnerReference* owner = pod.metadata.Controller()) {
    gated.owner = std::string(owner->kind) + " " + std::string(owner->name);
  }
  return gated;
}

std::string TableOf(const std::vector<GatedPod>& pods) {
  std::vector<std::vector<std::string>> rows{{"NAMESPACE", "POD", "PODGROUP", "WITHOUT THE GATE"}};
  for (const GatedPod& pod : pods) {
    rows.push_back({pod.key.ns, pod.key.name, pod.group.empty() ? "<none>" : kube::Printable(pod.group),
                    pod.has_foreign_gate ? "still gated by others" : "can be scheduled"});
  }
  return TableText(rows);
}

// The owners that will create more gated pods, one line each.
std::string MakersOf(const std::vector<GatedPod>& pods) {
  std::set<std::string> makers;
  for (const GatedPod& pod : pods) {
    if (!pod.owner.empty()) makers.insert(pod.key.ns + "   " + kube::Printable(pod.owner));
  }
  std::string text;
  for (const std::string& maker : makers) text += maker + "\n";
  return text;
}

}  // namespace

kube::Result<std::vector<GatedPod>> FindGatedPods(kube::Client& client, const std::string& ns) {
  std::vector<GatedPod> found;
  kube::ListOptions options;
  options.limit = kPage;
  do {
    const auto page = client.List(KindOf<kube::Pod>(), ns, options);
    if (!page) return kube::Error(page.error()).with("list pods");
    for (const auto& object : page->items) {
      const auto& pod = static_cast<const kube::Pod&>(*object);
      if (pod.metadata.is_being_deleted() || pod.spec.scheduling_gates.empty()) continue;
      if (GatedPod gated = Read(pod); !gated.gates.empty()) found.push_back(std::move(gated));
    }
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  std::sort(found.begin(), found.end(), [](const GatedPod& a, const GatedPod& b) { return a.key < b.key; });
  return found;
}

kube::Status LiftGates(kube::Client& client, const GatedPod& pod) {
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = pod.uid;
  for (const std::string& gate : pod.gates) {
    patch["spec"]["schedulingGates"].Append(Json::MakeObject({{"$patch", "delete"}, {"name", gate}}));
  }
  const auto patched = client.Patch(KindOf<kube::Pod>(), pod.key, kube::PatchType::kStrategicMerge, patch, {});
  if (patched || patched.error().code() == kube::ErrorCode::kNotFound) return {};
  const bool is_another = patched.error().message().find("metadata.uid") != std::string::npos;
  if (is_another) return {};  // The pod is gone; another one has its name.
  return kube::Error(patched.error()).with("lift the gate of Pod " + pod.key.ToString());
}

int UngatePods(kube::Client& client, const std::string& ns, bool must_lift, std::ostream& out, std::ostream& error) {
  const auto pods = FindGatedPods(client, ns);
  if (!pods) {
    error << "kubectl grus: " << kube::Printable(pods.error().message()) << "\n";
    return 1;
  }
  const std::string where = ns.empty() ? "" : " in namespace " + ns;
  if (pods->empty()) {
    out << "no pod waits for a gate of grus" << where << "\n";
    return 0;
  }
  out << TableOf(*pods);
  std::size_t failed = 0;
  if (must_lift) {
    for (const GatedPod& pod : *pods) {
      const kube::Status lifted = LiftGates(client, pod);
      if (lifted) continue;
      ++failed;
      error << "kubectl grus: " << kube::Printable(lifted.error().message()) << "\n";
    }
  }
  if (must_lift)
    out << "\n" << Count(static_cast<std::int64_t>(pods->size() - failed), "pod") << " ungated" << where << ".\n";
  else
    out << "\n"
        << Count(static_cast<std::int64_t>(pods->size()), "pod") << " would be ungated" << where
        << "; nothing was changed. Run it again with --yes to lift the gates.\n";
  if (const std::string makers = MakersOf(*pods); !makers.empty()) {
    out << "\nNew pods of these workloads will wait again, unless you remove the gate from their templates:\n"
        << makers;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace grus
