// SPDX-License-Identifier: Apache-2.0
// Which part of which GPU each container has, and who uses a shared GPU without one.
//
// The first is what PodResources says. The second joins it with the processes that the driver listed just before it was
// asked: so a container that has just started is in both. Who had a part half a minute ago is not told of, since its
// processes may be about to end, and a kubelet that has just started knows of no pod for a moment; neither are
// processes of which it is not known whose they are, nor init containers that ask for a part, which PodResources does
// not list. Time comes from `clock`. newest() is thread-safe, the rest is not.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "clientlib/base/clock.h"
#include "nodeagent/gpu_probe.h"
#include "nodeagent/node_pods.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

struct GivenPart {
  kube::ObjectKey pod = {};
  std::vector<std::string> pod_uids = {};  // See UidsOf(). Processes of an earlier pod of its name are not its own.
  std::string container = {}, gpu = {};    // UUID
  std::optional<int> index = {};           // Of the GPU; none: it is not shared now.
  std::int64_t milli = 0, memory_mib = 0;
  std::string enforcement = {};
  friend bool operator==(const GivenPart&, const GivenPart&) = default;
};

// Processes of one container on a shared GPU of which it has no part.
struct PartlessUse {
  PodName owner = {};
  std::string gpu = {};  // UUID
  int index = 0;         // Of the GPU.
  int processes = 0;
  std::optional<std::uint64_t> memory_bytes = std::uint64_t{0};  // None: that of one of them is not known.
  friend bool operator==(const PartlessUse&, const PartlessUse&) = default;
};

struct GivenParts {
  kube::TimePoint at = {};            // When PodResources was asked.
  std::vector<GivenPart> parts = {};  // One for each container and GPU.
  std::vector<PartlessUse> partless = {};
};

class PartWatch {
 public:
  using NewestLook = std::function<std::shared_ptr<const NodeSample>()>;  // Null: none so far.

  // All must outlive it. `own_pod`: UID of the agent's, of which it is not told: what it starts serves those with
  // parts.
  PartWatch(NewestLook newest_look, const kube::Clock& clock, std::string own_pod = {})
      : newest_look_(std::move(newest_look)), clock_(clock), own_pod_(std::move(own_pod)) {}

  void Begin();  // PodResources is asked next.
  // What it said, whole, and as parts by pod, of the pods of this node.
  void Note(const std::vector<HeldDevices>& held, const std::map<kube::ObjectKey, std::vector<HeldParts>>& parts,
            const std::vector<std::shared_ptr<const NodePod>>& pods, std::span<const SharedGpu> gpus);
  std::shared_ptr<const GivenParts> newest() const;  // Null: nothing was noted so far.

 private:
  using Holder = std::tuple<std::string, std::string, std::string, std::string>;  // Namespace, pod, container, GPU.
  void NoteHolders(const std::vector<HeldDevices>& held, const std::vector<GivenPart>& parts,
                   std::span<const SharedGpu> gpus);
  std::vector<PartlessUse> Partless(const std::vector<std::shared_ptr<const NodePod>>& pods,
                                    std::span<const SharedGpu> gpus) const;

  const NewestLook newest_look_;
  const kube::Clock& clock_;
  const std::string own_pod_;
  kube::TimePoint begun_ = {};
  std::shared_ptr<const NodeSample> look_;       // Before PodResources was asked.
  std::map<Holder, kube::TimePoint> last_held_;  // Also by whole devices.

  mutable std::mutex mutex_;  // Guards newest_.
  std::shared_ptr<const GivenParts> newest_;
};

}  // namespace grus
