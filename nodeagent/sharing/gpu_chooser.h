// SPDX-License-Identifier: Apache-2.0
// On which GPU a container gets the part that the kubelet asks for. Pure.
//
// The kubelet says how many ids of which resource, not for whom. It serves one container after another. So a call is
// the second one of a container if PodResources shows that the ids of the call before are held by a container that
// asks for just this amount of this resource and does not hold it yet: then the GPU is given. Any other call is the
// first one of a container, of those that hold nothing yet and ask for this amount. As it is not known of which of
// them, the GPU must have room for what the most demanding of them asks for beside it, as far as any GPU has; and the
// first of them that has a plan, or says how to choose, decides for all. The kubelet lists the pod that it admits now,
// and none that comes after it: most often that leaves one.
//
// Of the GPUs with room, it is the planned one; else one that leaves room for what is planned there for others, and
// that has other containers of the pod, and room for the rest of them, each as far as any has; of these the fullest, or
// the emptiest for who is to be spread. Of a pod that also asks for whole GPUs (whole_gpus.h) a part leaves enough
// free ones, if it can.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/pending_parts.h"

namespace grus {

struct GpuRoom {
  std::string uuid = {};
  PartAmounts total = {}, free = {};
  std::int64_t total_mib = 0, free_mib = 0;  // Of memory, where thousandths are given.
};

// The last call that was not refused.
struct LastPart {
  PartResource resource = PartResource::kMilli;
  std::vector<PartId> ids = {};  // Of one GPU where there is a counterpart; never empty.
  bool is_fresh = false;         // It was answered so recently that no other container can have been begun since.
  bool is_refused = false;       // A later call was: the kubelet has given up the pod, and goes on to another.
  const std::string& gpu() const { return ids.front().gpu; }
};

struct ChooserView {
  PartResource resource = PartResource::kMilli;
  std::int64_t amount = 0;
  std::vector<GpuRoom> gpus = {};                   // Healthy ones, by index.
  std::set<std::string> needed = {};                // Of these, by UUID, those that must be among whole GPUs.
  std::optional<std::vector<HeldParts>> held = {};  // nullopt: PodResources does not answer.
  std::set<kube::ObjectKey> listed = {};            // Pods that PodResources lists, if they hold nothing, too.
  std::optional<std::vector<PartAsk>> asks = {};    // nullopt: the API server has not answered yet.
  std::optional<LastPart> last = {};                // nullopt: none since the agent began.
  PartPlacement placement = PartPlacement::kPack;   // For pods that say nothing.
};

struct Partner {
  std::string gpu = {};
  std::string owner = {};  // "team-a/bert-0, container main"; empty: taken for the owner of the last ids, unseen.
  bool is_sure = false;    // PodResources and the API server say so.
  bool is_likely = false;  // Unless it is sure: more so than that PodResources would show it, if it were there.
};

// The container whose second call this is, if it is one.
std::optional<Partner> FindPartner(const ChooserView& view);

// Pods that the kubelet knows and the API server has not shown yet: one of them may be asking now.
std::set<kube::ObjectKey> PodsToAwait(const ChooserView& view);

struct GpuChoice {
  std::vector<std::string> gpus = {};   // By index; one, but for whole GPUs.
  std::optional<Partner> partner = {};  // Whose second call it is.
  std::int64_t pod_amount = 0;          // See PodAmount().
  std::int64_t memory_mib = 0;          // See SaidMemory().
};

// Containers that may be asking for the first time, the oldest pod's first.
std::vector<const PartAsk*> Candidates(const ChooserView& view);
// The pod of all candidates; null: they are none or of several.
const kube::ObjectKey* PodOf(const std::vector<const PartAsk*>& candidates);
bool HoldsAny(const ChooserView& view, const PartAsk& ask);  // By PodResources.

// How much of this resource all containers of the pod ask for, without init containers, whose call this is; 0: it is
// not known which pod that is.
std::int64_t PodAmount(const ChooserView& view);

// The memory that the pod says whose call this is; 0: it says nothing, or it is not known which pod that is.
std::int64_t SaidMemory(const ChooserView& view);

// Error (kInvalidArgument): no GPU has that much; names the amounts and what to do.
kube::Result<GpuChoice> ChooseGpu(const ChooserView& view);

// "ask for 90 alnair/vgpu-memory: a GPU of this node has 79 at most, ask for no more"
kube::Error TooMuchFor(PartResource resource, std::int64_t amount, std::int64_t most);

}  // namespace grus
