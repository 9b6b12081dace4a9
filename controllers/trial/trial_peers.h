// SPDX-License-Identifier: Apache-2.0
// The pods of a trial of several, one on each node. The first is the trial: it has its name, and its log is read; it
// owns the others, its peers, which are all there before it may start. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "clientlib/model/pod.h"
#include "controllers/trial/trial_view.h"

namespace grus {

// On all of its pods: the name of the trial, and on the first their number.
inline constexpr char kTrialLabel[] = "ai.centauruscloud.io/trial";
inline constexpr char kPodsAnnotation[] = "ai.centauruscloud.io/trial-pods";

// Also for what is no trial: 1.
int PodsOfTrial(const kube::Pod& first);

std::string PeerName(const std::string& trial, int rank);

// The trial whose peer that is, and the TrialJob of both; nullopt: it is none.
struct PeerOf {
  kube::ObjectKey trial_job, trial;
};
std::optional<PeerOf> ReadPeerOf(const kube::ObjectMeta& pod);

// Adds a peer of the pod that `child` was read from.
void ReadPeer(const kube::Pod& peer, bool has_node, TrialChild& child);
// Call after all peers of `first`.
void CheckPeers(const kube::Pod& first, TrialChild& child);

}  // namespace grus
