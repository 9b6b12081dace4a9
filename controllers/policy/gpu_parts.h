// SPDX-License-Identifier: Apache-2.0
// Parts of GPUs among amounts of resources. Pure functions.
//
// A node whose GPUs are shared offers, beside the sum that its kubelet knows ("ai.centauruscloud.io/gpu-milli 8000"),
// the same of each GPU: "ai.centauruscloud.io/gpu-milli#GPU-4f2c 1000". A pod asks for the sum alone; what it holds
// names its GPU, too, once that is known. So what is added up for a node is added up for each of its GPUs. All parts
// that one pod asks for lie on one GPU.
//
// Thousandths bring memory in proportion, which so needs no account, unless the pod says how many MiB. Then these are
// held, too (kSaidMemory), and once its GPU is known, its thousandths are held a second time, as those that bring no
// memory: the other thousandths on a GPU and the MiB said are what is taken of its memory. No sum limits these MiB:
// they are limited where the GPUs of a node are known, and only there.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/core_v1.h"
#include "controllers/policy/resources.h"
#include "controllers/queues/queue_spec.h"

namespace grus {

// MiB. No resource of Kubernetes can have this name, so that no pod asks for it itself.
inline constexpr char kSaidMemory[] = "ai.centauruscloud.io/gpu-milli memory (MiB)";

bool IsGpuPart(std::string_view resource);       // One of those in crds/types/sharing_names.h, or kClaimedMilli.
bool IsOnOneGpu(std::string_view resource);      // Names a GPU, too.
bool AsksForGpuParts(const Resources& request);  // By its containers, not by claims.
bool IsOnGpus(const Resources& request);         // Either way: its GPU matters to the plan.

// nullopt: it is neither word.
std::optional<PoolPlacement> PlacementNamed(std::string_view word);
// What the pod itself says; nullopt: nothing.
std::optional<PoolPlacement> PartPlacementOf(const kube::Pod& pod);

// Not below zero: an overcommitted resource is not free for anybody. Sums saturate, so that the difference of two may
// be too large.
std::int64_t RestOf(std::int64_t offer, std::int64_t taken);

// MiB of each container with thousandths, by the annotation; 0: it says nothing. One that makes no sense is more than
// any GPU has.
std::int64_t SaidMemoryOf(const kube::ObjectMeta& pod);

// Adds the memory that the pod says for its thousandths, if it does.
void AddSaidMemory(const kube::Pod& pod, Resources& request);

// Thousandths of GPUs that the parts come to, also by claims; memory alone counts as none.
std::int64_t MilliOfGpuParts(const Resources& request);

// Adds to what the node's kubelet offers what each GPU of the inventory does. A text that makes no sense adds nothing:
// pods then find their GPU without a plan.
void AddGpus(const kube::Node& node, Resources& allocatable);

// The driver by which grus-node-agent gives parts of GPUs to claims (Dynamic Resource Allocation). Its devices have the
// UUIDs of their GPUs as names, in lower case; each node is a pool.
inline constexpr char kGpuClaimDriver[] = "gpu.ai.centauruscloud.io";

// Takes from what the node offers the GPUs of which claims have parts, by the names of their devices: the agent gives
// them to nobody else before these have ended. On a node whose GPUs are not shared, each is one whole GPU.
void WithholdClaimedGpus(const std::set<std::string>& devices, Resources& allocatable);

// The GPUs of a bound pod: by the agent, else by the plan; empty: not known.
std::vector<std::string> GpusOf(const kube::Pod& pod);

// The request, with what it takes of this GPU. The same request if it asks for no parts or the GPU is empty.
Resources OnGpu(Resources request, std::string_view gpu);

// Whether both take the same, whatever they take of which GPU.
bool AreAlikeWithoutGpu(const Resources& a, const Resources& b);

// Whether somebody has said which GPU it is.
bool NamesGpu(const Resources& request);

// Whether some of what is held is on this GPU.
bool IsOnGpu(const Resources& held, std::string_view gpu);

// How many copies fit, each on one GPU; `at_most` if it asks for no parts or nothing is known of the node's GPUs. The
// sums are not looked at. `taken` may be negative, as of a node without its pods.
int CopiesOnGpus(const Resources& allocatable, const Resources& taken, const Resources& request, int at_most);

// The GPU for one more copy: `preferred` if it has room, else of those that have the fullest, or to spread the
// emptiest. Empty: none has, or it asks for no parts.
std::string ChooseGpu(const Resources& allocatable, const Resources& taken, const Resources& request,
                      PoolPlacement placement, std::string_view preferred = {});

}  // namespace grus
