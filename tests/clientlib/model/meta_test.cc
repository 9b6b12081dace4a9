// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/meta.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(ObjectMeta, ControllerIsTheReferenceThatSaysSo) {
  ObjectMeta meta;
  EXPECT_EQ(meta.Controller(), nullptr);
  meta.owner_references = {
      {.api_version = "v1", .kind = "ConfigMap", .name = "a", .uid = "1"},
      {.api_version = "v1", .kind = "Pod", .name = "b", .uid = "2", .controller = false},
      {.api_version = "apps/v1", .kind = "StatefulSet", .name = "c", .uid = "3", .controller = true}};
  ASSERT_NE(meta.Controller(), nullptr);
  EXPECT_EQ(meta.Controller()->name, "c");
}

TEST(ObjectMeta, MissingLabelsAreEmpty) {
  ObjectMeta meta;
  meta.labels = {{"a", "1"}};
  EXPECT_EQ(meta.Label("a"), "1");
  EXPECT_EQ(meta.Label("b"), "");
  EXPECT_EQ(meta.Annotation("a"), "");
}

TEST(ObjectKey, TextHasNamespaceOnlyIfThereIsOne) {
  EXPECT_EQ((ObjectKey{"team-a", "bert"}).ToString(), "team-a/bert");
  EXPECT_EQ((ObjectKey{"", "node-1"}).ToString(), "node-1");
}

}  // namespace
}  // namespace kube
