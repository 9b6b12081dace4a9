// SPDX-License-Identifier: Apache-2.0
// Namespaces that end.
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

class Ending : public Contract {
 protected:
  // Ends ns(), which an object with a finalizer holds.
  void End() {
    MakeConfigMap("held", "{}", R"({"finalizers":["grus.dev/hold"]})");
    ended_ = Delete("/api/v1/namespaces/" + ns());
  }
  void TearDown() override {
    Merge(ConfigMaps() + "/held", R"({"metadata":{"finalizers":null}})");
    Contract::TearDown();
  }
  Answer ended_;
};

TEST_F(Ending, NamespacesBeginActive) {
  const Answer made = Get("/api/v1/namespaces/" + ns());

  EXPECT_EQ(made["status.phase"], "Active");
  EXPECT_EQ(made["spec.finalizers"], R"(["kubernetes"])");
  EXPECT_EQ(*made.body.At({"metadata", "labels"}), Json::MakeObject({{"kubernetes.io/metadata.name", Json(ns())}}));
}

TEST_F(Ending, NamespacesTerminateFirst) {
  End();

  EXPECT_EQ(ended_.status, 200);
  EXPECT_EQ(ended_["kind"], "Namespace");
  EXPECT_EQ(ended_["status.phase"], "Terminating");
  EXPECT_NE(ended_["metadata.deletionTimestamp"], "(none)");
  EXPECT_EQ(ended_["metadata.deletionGracePeriodSeconds"], "(none)");
  EXPECT_EQ(Get("/api/v1/namespaces/" + ns()).status, 200);
}

TEST_F(Ending, NamespacesTakeNothingNew) {
  End();

  const Answer map = Post(ConfigMaps(), ConfigMap("late"));
  EXPECT_TRUE(Refused(map, 403, "Forbidden",
                      "configmaps \"late\" is forbidden: unable to create new content in namespace " + ns() +
                          " because it is being terminated"));
  EXPECT_EQ(map["details.kind"], "configmaps");
  EXPECT_EQ(map["details.causes.0.reason"], "NamespaceTerminating");
  EXPECT_EQ(map["details.causes.0.message"], "namespace " + ns() + " is being terminated");
  EXPECT_EQ(map["details.causes.0.field"], "metadata.namespace");
  EXPECT_TRUE(Refused(Post(Widgets(), Widget("late")), 403, "Forbidden",
                      "widgets.contract.grus.dev \"late\" is forbidden: unable to create new content in namespace " +
                          ns() + " because it is being terminated"));
}

}  // namespace
}  // namespace kube::contract
