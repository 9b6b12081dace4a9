// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/resource_path.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

constexpr Kind kPods{.version = "v1", .kind = "Pod", .plural = "pods"};
constexpr Kind kSets{.group = "apps", .version = "v1", .kind = "StatefulSet", .plural = "statefulsets"};
constexpr Kind kNodes{.version = "v1", .kind = "Node", .plural = "nodes", .is_namespaced = false};
constexpr Kind kCrds{.group = "apiextensions.k8s.io",
                     .version = "v1",
                     .kind = "CustomResourceDefinition",
                     .plural = "customresourcedefinitions",
                     .is_namespaced = false};

TEST(ResourcePath, Collections) {
  struct Case {
    const Kind& kind;
    std::string_view ns, want;
  };
  for (const Case& c : {Case{kPods, "team-a", "/api/v1/namespaces/team-a/pods"}, Case{kPods, "", "/api/v1/pods"},
                        Case{kSets, "team-a", "/apis/apps/v1/namespaces/team-a/statefulsets"},
                        Case{kSets, "", "/apis/apps/v1/statefulsets"}, Case{kNodes, "", "/api/v1/nodes"},
                        Case{kNodes, "ignored", "/api/v1/nodes"},
                        Case{kCrds, "", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"}}) {
    EXPECT_EQ(CollectionPath(c.kind, c.ns), c.want);
  }
}

TEST(ResourcePath, Objects) {
  EXPECT_EQ(ObjectPath(kPods, {"team-a", "bert-0"}), "/api/v1/namespaces/team-a/pods/bert-0");
  EXPECT_EQ(ObjectPath(kNodes, {"", "gpu-1"}), "/api/v1/nodes/gpu-1");
  EXPECT_EQ(ObjectPath(kSets, {"team-a", "bert"}, "scale"), "/apis/apps/v1/namespaces/team-a/statefulsets/bert/scale");
}

TEST(ResourcePath, KindsCannotLeaveTheirSegments) {
  const Kind odd{.group = "batch?x=", .version = "v1/namespaces/team-a/jobs/victim?x=", .kind = "Job", .plural = "a#b"};
  EXPECT_EQ(ObjectPath(odd, {"team-b", "train"}),
            "/apis/batch%3Fx%3D/v1%2Fnamespaces%2Fteam-a%2Fjobs%2Fvictim%3Fx%3D/namespaces/team-b/a%23b/train");
  const Kind escaped{.group = "batch", .version = "v1%2Fnamespaces", .kind = "Job", .plural = "jobs"};
  EXPECT_EQ(CollectionPath(escaped, ""), "/apis/batch/v1%252Fnamespaces/jobs");
}

TEST(ResourcePath, NamesCannotLeaveTheirSegment) {
  EXPECT_EQ(ObjectPath(kPods, {"a/../b", "x?y=1#z"}), "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fy%3D1%23z");
  EXPECT_EQ(ObjectPath(kNodes, {"", "system:a b"}), "/api/v1/nodes/system%3Aa%20b");
}

}  // namespace
}  // namespace kube
