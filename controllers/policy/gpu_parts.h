// SPDX-License-Identifier: Apache-2.0
// Parts of GPUs among amounts of resources. Pure functions.
//
// A node whose GPUs are shared offers, beside the sum that its kubelet knows ("ai.centauruscloud.io/gpu-milli 8000"),
// the same of each GPU: "ai.centauruscloud.io/gpu-milli#GPU-4f2c 1000". A pod asks for the sum alone; what it holds
// names its GPU, too, once that is known. So what is added up for a node is added up for each of its GPUs. All parts
// that one pod asks for lie on one GPU; but 2000 thousandths and other multiples of 1000 are so many GPUs of which
// nobody else has any.
//
// Thousandths bring memory in proportion, which so needs no account, unless the pod says how many MiB. Then these are
// held, too (kSaidMemory), and once its GPU is known, its thousandths are held a second time, as those that bring no
// memory: the other thousandths on a GPU and the MiB said are what is taken of its memory. No sum limits these MiB:
// they are limited where the GPUs of a node are known, and only there.
#pragma once

#include <functional>
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

// 1: the thousandths of its containers come to whole GPUs in sum alone. So they lie on one GPU, which has not as many.
inline constexpr char kMixedParts[] = "parts of GPUs that are no whole ones";

bool IsGpuPart(std::string_view resource);   // One of those in crds/types/sharing_names.h, or kClaimedMilli.
bool IsOnOneGpu(std::string_view resource);  // Names a GPU, too.
std::string PartOn(std::string_view resource, std::string_view gpu);  // The name of the same on this GPU.
bool AsksForGpuParts(const Resources& request);                       // By its containers, not by claims.
bool IsOnGpus(const Resources& request);                              // Either way: its GPU matters to the plan.
std::int64_t WholeGpusOf(const Resources& request);  // 2000 thousandths: 2; 1500, and all up to 1000: 0.

// nullopt: it is neither word.
std::optional<PoolPlacement> PlacementNamed(std::string_view word);
// What the pod itself says; nullopt: nothing.
std::optional<PoolPlacement> PartPlacementOf(const kube::Pod& pod);

// Not below zero: an overcommitted resource is not free for anybody. Sums saturate, so that the difference of two may
// be too large.
std::int64_t RestOf(std::int64_t offer, std::int64_t taken);

bool IsOfSingleGpus(std::string_view name);  // No sum of a node limits it: what is said of parts, and sizes of claims.

// Thousandths of GPUs that the parts come to, also by claims; memory alone counts as none.
std::int64_t MilliOfGpuParts(const Resources& request);

// The driver by which grus-node-agent gives parts of GPUs to claims (Dynamic Resource Allocation). Its devices have the
// UUIDs of their GPUs as names, in lower case; each node is a pool.
inline constexpr char kGpuClaimDriver[] = "gpu.ai.centauruscloud.io";

// Takes from what the node offers the GPUs of which claims have parts, by the names of their devices: the agent gives
// them to nobody else before these have ended. On a node whose GPUs are not shared, each is one whole GPU.
void WithholdClaimedGpus(const std::set<std::string>& devices, Resources& allocatable);

// The request, with what it takes of these GPUs: "GPU-4f2c", or "GPU-4f2c,GPU-5a01" of one that asks for whole ones.
// What it asks for else counts on each of several: too much, and never too little. The same request if it asks for no
// parts or there are none.
Resources OnGpu(Resources request, std::string_view gpus);

inline constexpr std::size_t kMostGpusOfNode = 64;                 // Of a node; more are not read.
std::string GpuListOf(const std::vector<std::string_view>& gpus);  // "GPU-4f2c,GPU-5a01"
void ForEachListedGpu(std::string_view gpus, const std::function<void(std::string_view gpu)>& visit);

// Calls `visit` for each GPU of which the node offers thousandths: how many nobody holds.
void ForEachFreeGpu(const Resources& allocatable, const Resources& taken,
                    const std::function<void(std::string_view gpu, std::int64_t milli)>& visit);

// "300 ai.centauruscloud.io/gpu-milli on one GPU: 200 are free at most", of the first part that is asked for, or of
// whole GPUs how many are free: why no copy fits. REQUIRES: it asks for parts by its containers.
std::string LackOnGpus(const Resources& allocatable, const Resources& taken, const Resources& request);

// Whether both take the same, whatever they take of which GPU.
bool AreAlikeWithoutGpu(const Resources& a, const Resources& b);

// Whether somebody has said which GPU it is.
bool NamesGpu(const Resources& request);

// Whether some of what is held is on each of these GPUs.
bool IsOnGpu(const Resources& held, std::string_view gpus);

// How many copies fit, each on one GPU, or on as many free ones as it asks for; `at_most` if it asks for no parts or
// nothing is known of the node's GPUs. The sums are not looked at. `taken` may be negative, as of a node without its
// pods.
int CopiesOnGpus(const Resources& allocatable, const Resources& taken, const Resources& request, int at_most);

// The GPUs on which one more copy fits. Empty: none, or it asks for no parts by its containers, or for whole GPUs.
std::vector<std::string> GpusWithRoom(const Resources& allocatable, const Resources& taken, const Resources& request);

// The GPU for one more copy, or its whole ones, as for OnGpu(): `preferred` if it has room, else of those that have the
// fullest, or to spread the emptiest. Empty: none has, or it asks for no parts.
std::string ChooseGpu(const Resources& allocatable, const Resources& taken, const Resources& request,
                      PoolPlacement placement, std::string_view preferred = {});

}  // namespace grus
