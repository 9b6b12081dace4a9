// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of PodGroup: groups, their members as bare pods and StatefulSets, and what became
// of them.
//
// A test suite derived from Gang has a manager of its own; tests that leave a GPU pod outside any gang behind
// make the manager hold nodes by nominations for the rest of its suite.
#pragma once

#include <gmock/gmock.h>

#include "crds/types/pod_group.h"
#include "tests/integration/elastic_job.h"
#include "tests/kit/objects.h"

namespace grus::testing {

class Gang : public ElasticJob {
 protected:
  static constexpr char kGroup[] = "gang";

  // `more`: further fields of the spec.
  void CreateGroup(int min_member, const std::string& name = kGroup, std::string_view more = "{}",
                   const kube::Kind& kind = kube::KindOf<api::PodGroup>());
  // With the gate, `gpus` for the container, and the nodes of this test's pool; `more` is merged over it.
  kube::Json PodSpec(int gpus, std::string_view more = "{}") const;
  // Members; `spec` is merged over that of the pod. The group of a StatefulSet is its name if none is given.
  void CreateSet(int replicas, int gpus, const std::string& name = kGroup, const std::string& group = {},
                 std::string_view spec = "{}");
  void CreateMember(const std::string& name, int gpus, const std::string& group = kGroup, std::string_view spec = "{}",
                    const std::string& label = api::kPodGroupLabel);
  // In no gang; `spec` is merged over that of the pod.
  void CreateOutsider(const std::string& name, int gpus, std::string_view spec = "{}");
  // A claim that is to be bound with its pod, and finds no volume until CreateVolume(): the ledger knows nothing of it,
  // and the scheduler leaves a pod with kWithClaim pending.
  void CreateClaimWithoutVolume();
  void CreateVolume();
  static constexpr char kWithClaim[] = R"({"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]})";
  void DeletePod(const std::string& name) { Delete<kube::Pod>(name); }

  std::shared_ptr<const api::PodGroup> Group(const std::string& name = kGroup) const;
  std::string GroupPhase(const std::string& name = kGroup) const;
  std::string GroupReason(const std::string& name = kGroup) const { return kit::ReasonOf(Group(name)); }
  std::string GroupMessage(const std::string& name = kGroup) const { return kit::MessageOf(Group(name)); }
  bool GroupSays(std::string_view text, const std::string& name = kGroup) const;  // In its message.
  PodPtr ThePod(const std::string& name) const { return world().Get<kube::Pod>(ns(), name); }
  PodList Members(const std::string& name = kGroup) const;  // That are not being deleted, by ordinal.
  int Bound(const std::string& name = kGroup) const;
  int Gated(const std::string& name = kGroup) const;
  bool Runs(int members, const std::string& name = kGroup) const;  // Phase Running, with so many bound.
  // UIDs of all members there ever were.
  std::set<std::string> EverMembers(const std::string& name = kGroup) const;

  // The notes of the events about an object of this test's namespace, one each.
  std::vector<std::string> Events(const std::string& object, const std::string& reason,
                                  const std::string& type = "Warning") const;
  bool HasEvent(const std::string& object, const std::string& reason, const std::string& type = "Warning") const {
    return !Events(object, reason, type).empty();
  }
};

// Nothing has written for so long: neither the manager nor anybody in the namespace.
inline constexpr std::chrono::seconds kQuiet{3};

}  // namespace grus::testing
