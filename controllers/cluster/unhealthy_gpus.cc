// SPDX-License-Identifier: Apache-2.0
// PodDevices: GPUs that somebody has taken out of use, as gpushare has it.
#include "controllers/cluster/pod_devices.h"
#include "controllers/policy/gpushare_gpus.h"

namespace grus {

std::span<const kube::FieldInfo> UnhealthyGpusData::Fields() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&UnhealthyGpusData::gpus>("gpus")};
  return kFields;
}

const kube::Kind& UnhealthyGpus::ResourceKind() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&UnhealthyGpus::data>("data")};
  static const kube::Kind kKind =
      kube::MakeKind<UnhealthyGpus>({.version = "v1", .kind = "ConfigMap", .plural = "configmaps", .fields = kFields});
  return kKind;
}

void PodDevices::OnUnhealthyGpus(const kube::Change& change) {
  const auto* before = static_cast<const UnhealthyGpus*>(change.before.get());
  const auto* after = static_cast<const UnhealthyGpus*>(change.after.get());
  const std::string node(NodeOfUnhealthyGpus(change.Any().metadata.name));
  if (node.empty() || (before && after && before->data == after->data)) return;
  if (after && !UnhealthyGpusIn(after->data.gpus)) {
    log_.Warn("a list of unhealthy GPUs is not heeded: expected numbers from 0 on, with commas between them",
              {{"config_map", after->metadata.Key().ToString()}});
  }
  for (const auto& tell : on_node_) tell(node);
}

void PodDevices::WithholdUnhealthy(const kube::Node& node, Resources& allocatable) const {
  if (caches_.unhealthy_gpus == nullptr) return;
  const auto list =
      caches_.unhealthy_gpus->Get<UnhealthyGpus>({kUnhealthyGpusNamespace, UnhealthyGpusOf(node.metadata.name)});
  const auto numbers = list ? UnhealthyGpusIn(list->data.gpus) : std::nullopt;
  if (numbers) WithholdGpushareGpus(node, *numbers, allocatable);
}

}  // namespace grus
