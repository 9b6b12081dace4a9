// SPDX-License-Identifier: Apache-2.0
#include "crds/types/node_pool.h"

#include <cstddef>

namespace api {

using kube::CelRule;
using kube::Field;
using kube::FieldInfo;

std::span<const std::string_view> EnumNames(PoolPlacement) {
  static constexpr std::string_view kNames[] = {"BinPack", "Spread", "UtilSched", "Interference"};
  return kNames;
}

std::span<const std::string_view> EnumNames(NodePoolReason) {
  static constexpr std::string_view kNames[] = {"Pending", "Ready",        "NoNodes",
                                                "NoGpus",  "PoolsOverlap", "NotPermitted"};
  return kNames;
}

std::string_view ToString(NodePoolReason reason) { return EnumNames(reason)[static_cast<std::size_t>(reason)]; }

namespace {

constexpr CelRule kSelectorRules[] = {
    {"self.all(key, self[key].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",
     "nodeSelector must have values that labels can have, of letters, digits, '-', '_' and '.': for example "
     "NVIDIA-A100-SXM4-80GB, as `kubectl get nodes --show-labels` prints it"},
};
// Kubernetes' own resources, such as cpu, memory and hugepages-2Mi, have no domain.
constexpr CelRule kResourceRules[] = {
    {"self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
     "resource must be the name of an extended resource, DOMAIN/NAME, as it stands in the status of the nodes: for "
     "example nvidia.com/gpu, amd.com/gpu or google.com/tpu"},
};

}  // namespace

std::span<const FieldInfo> NodePoolSpec::Fields() {
  using T = NodePoolSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::node_selector>(
          "nodeSelector",
          {.doc = "The nodes of this pool: those that have all of these labels. A node that several pools select "
                  "belongs to the pool that was created first.",
           .required = true,
           .max_length = 63,
           .min_items = 1,
           .max_items = 16,
           .cel = kSelectorRules}),
      Field<&T::resource>("resource",
                          {.doc = "The resource that counts as GPUs on these nodes, of any vendor: for example "
                                  "nvidia.com/gpu, amd.com/gpu or google.com/tpu. nvidia.com/gpu if not set.",
                           .max_length = 317,
                           .default_json = "\"nvidia.com/gpu\"",
                           .cel = kResourceRules}),
      Field<&T::placement>(
          "placement",
          {.doc =
               "To which nodes of the pool pods with GPUs go. BinPack: the fullest that have room, so that whole "
               "nodes stay free for large jobs. Spread: each pod to the node of which most is free. UtilSched: the "
               "same as BinPack, but pods that a scheduler asks the extender about go by what is measured of GPUs and "
               "CPUs. Interference: likewise, but they get the GPU on which the least is lost, by how fast they and "
               "the pods that are there are predicted to be beside each other. BinPack if not set.",
           .default_json = "\"BinPack\""}),
      Field<&T::least_speed_percent>(
          "leastSpeedPercent",
          {.doc = "With placement Interference: of its speed alone, what each pod on a shared GPU is to keep, by the "
                  "low end of what is predicted. A pod that would have less on a GPU, or leave less to a pod that is "
                  "there, does not get that GPU, and waits if it finds no other. 0: no pod waits for that.",
           .minimum = 0,
           .maximum = 100}),
      Field<&T::paged_memory_percent>(
          "pagedMemoryPercent",
          {.doc = "Over-subscribed memory, in percent of the memory of a part of a GPU: what its container may have "
                  "beside that, in the memory of the node while the GPU has no room. Pods ask for it by the annotation "
                  "sharing.ai.centauruscloud.io/paged-mib; others keep all of their parts. It needs the enforcement "
                  "cooperative on the nodes. 0: none.",
           .minimum = 0,
           .maximum = 400}),
  };
  return kFields;
}

std::span<const FieldInfo> NodePoolStatus::Fields() {
  using T = NodePoolStatus;
  static constexpr FieldInfo kFields[] = {
      Field<&T::observed_generation>("observedGeneration", {.doc = "The generation this status is about."}),
      Field<&T::conditions>("conditions",
                            {.doc = "Ready: jobs can run on its nodes; the reason may still be a warning. Reconciling: "
                                    "it has no nodes or no GPUs yet. Stalled: its selector has to be corrected.",
                             .max_items = 16,
                             .list_type = "map",
                             .list_map_key = "type"}),
      Field<&T::nodes>("nodes", {.doc = "Nodes of the pool.", .minimum = 0}),
      Field<&T::gpus>("gpus", {.doc = "Allocatable GPUs of these nodes.", .minimum = 0}),
      Field<&T::used>("used", {.doc = "GPUs that pods hold or that are kept for pods about to start. Parts of GPUs are "
                                      "added up and rounded up.",
                               .minimum = 0}),
      Field<&T::free>("free", {.doc = "GPUs that nobody holds, not even in part, on nodes that are ready and not "
                                      "cordoned.",
                               .minimum = 0}),
  };
  return kFields;
}

namespace {

constexpr CelRule kSpecRules[] = {
    {"!has(self.leastSpeedPercent) || self.leastSpeedPercent == 0 || self.placement == 'Interference'",
     "leastSpeedPercent is for placement Interference alone: only there is it predicted how fast pods are beside each "
     "other"},
};

}  // namespace

const kube::Kind& NodePool::ResourceKind() {
  using T = NodePool;
  static constexpr FieldInfo kFields[] = {
      Field<&T::spec>("spec", {.doc = "What the user wants.", .required = true, .cel = kSpecRules}),
      // What a new pool shows until grus has looked at it: to kstatus it is under way, not ready.
      Field<&T::status>(
          "status",
          {.doc = "What grus observed.",
           .default_json = R"({"conditions":[{"type":"Reconciling","status":"True","reason":"Pending",)"
                           R"("message":"waiting for grus-manager","lastTransitionTime":"1970-01-01T00:00:00Z"}]})"}),
  };
  static const kube::Kind kKind = kube::MakeKind<T>({.group = "ai.centauruscloud.io",
                                                     .version = "v1alpha1",
                                                     .kind = "NodePool",
                                                     .plural = "nodepools",
                                                     .is_namespaced = false,
                                                     .fields = kFields});
  return kKind;
}

}  // namespace api
