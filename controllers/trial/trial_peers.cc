// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_peers.h"

#include <algorithm>
#include <charconv>

#include "controllers/cluster/owners.h"
#include "controllers/policy/training_container.h"

namespace grus {
namespace {

// Of the container that trains; others may run on.
std::optional<int> ExitCodeOf(const kube::Pod& pod) {
  const std::string training = TrainingContainerOf(pod);
  for (const kube::ContainerStatus& status : pod.status.container_statuses) {
    if (status.name == training && status.state.terminated) return status.state.terminated->exit_code;
  }
  return std::nullopt;
}

std::string HowItEnded(const kube::Pod& pod) {
  if (const auto code = ExitCodeOf(pod)) return " ended with exit code " + std::to_string(*code);
  return " failed" + (pod.status.reason.view().empty() ? "" : ": " + pod.status.reason.str());
}

}  // namespace

int PodsOfTrial(const kube::Pod& first) {
  const std::string_view text = first.metadata.Annotation(kPodsAnnotation);
  int pods = 1;
  std::from_chars(text.data(), text.data() + text.size(), pods);
  return std::clamp(pods, 1, 1 << 20);
}

std::string PeerName(const std::string& trial, int rank) { return trial + "-" + std::to_string(rank); }

std::optional<PeerOf> ReadPeerOf(const kube::ObjectMeta& pod) {
  const kube::OwnerReference* owner = pod.Controller();
  const std::string_view trial_job = pod.Label(kTrialJobLabel);
  const bool is_pod = owner != nullptr && owner->api_version == "v1" && owner->kind == kube::KindOf<kube::Pod>().kind;
  if (!is_pod || trial_job.empty()) return std::nullopt;
  return PeerOf{{pod.ns, std::string(trial_job)}, {pod.ns, owner->name.str()}};
}

void ReadPeer(const kube::Pod& peer, bool has_node, TrialChild& child) {
  child.peers.emplace(peer.metadata.name, peer.metadata.uid);
  const bool has_child_ended = child.phase == "Succeeded" || child.phase == "Failed";
  const bool has_failed = peer.status.phase.view() == "Failed" || ExitCodeOf(peer).value_or(0) != 0;
  if (has_child_ended) {
    if (!HasEnded(peer) && has_node) child.lingers = true;
  } else if (!has_node || has_failed) {
    child.phase = "Failed";  // The others cannot train without it.
    child.message = "its pod " + peer.metadata.name + (has_node ? HowItEnded(peer) : " has lost its node");
    child.lingers = true;
  }
}

void CheckPeers(const kube::Pod& first, TrialChild& child) {
  for (int rank = 1; rank < PodsOfTrial(first); ++rank) {
    const std::string name = PeerName(first.metadata.name, rank);
    if (child.peers.contains(name)) continue;
    if (first.spec.node_name.empty()) {
      child.lacks_peers = true;
    } else if (child.phase != "Succeeded" && child.phase != "Failed") {
      child.phase = "Failed";
      child.message = "its pod " + name + " is gone";
      child.lingers = true;
    }
    return;
  }
}

}  // namespace grus
