// SPDX-License-Identifier: Apache-2.0
// Which APIs there are, CRDs as objects, and namespaces that end.
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kCrds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

class Discovery : public Contract {
 protected:
  // The entry of an APIResourceList; null if there is none.
  static Json Resource(const Answer& list, std::string_view name) {
    const Json* resources = list.body.Find("resources");
    if (resources == nullptr || resources->AsArray() == nullptr) return {};
    for (const Json& resource : *resources->AsArray()) {
      if (TextAt(resource, "name") == name) return resource;
    }
    return {};
  }
};

TEST_F(Discovery, TellsItsVersion) {
  const Answer version = Get("/version");

  EXPECT_EQ(version.status, 200);
  EXPECT_EQ(version["major"], "1");
  EXPECT_THAT(version["gitVersion"], StartsWith("v1."));
}

TEST_F(Discovery, TellsThatItIsReady) {
  for (const char* path : {"/readyz", "/livez", "/healthz"}) {
    EXPECT_EQ(Get(path).status, 200) << path;
    EXPECT_EQ(Get(path).http.body, "ok") << path;
  }
}

TEST_F(Discovery, ListsTheCoreGroup) {
  const Answer versions = Get("/api");
  EXPECT_EQ(versions["kind"], "APIVersions");
  EXPECT_EQ(versions["versions"], R"(["v1"])");

  const Answer list = Get("/api/v1");
  EXPECT_EQ(list["kind"], "APIResourceList");
  EXPECT_EQ(list["groupVersion"], "v1");
  EXPECT_EQ(TextAt(Resource(list, "pods"), "kind"), "Pod");
  EXPECT_EQ(TextAt(Resource(list, "pods"), "namespaced"), "true");
  EXPECT_EQ(TextAt(Resource(list, "namespaces"), "namespaced"), "false");
  EXPECT_EQ(TextAt(Resource(list, "pods/status"), "kind"), "Pod");
}

TEST_F(Discovery, ListsTheGroups) {
  const Answer groups = Get("/apis");

  EXPECT_EQ(groups["kind"], "APIGroupList");
  for (const char* group : {"apps/v1", "batch/v1", "coordination.k8s.io/v1", "events.k8s.io/v1",
                            "apiextensions.k8s.io/v1", "contract.grus.dev/v1"}) {
    EXPECT_THAT(groups.http.body, HasSubstr("\"groupVersion\":\"" + std::string(group) + "\""));
  }
}

TEST_F(Discovery, ListsTheResourcesOfACrd) {
  const Answer list = Get("/apis/contract.grus.dev/v1");

  EXPECT_EQ(list["kind"], "APIResourceList");
  EXPECT_EQ(list["groupVersion"], "contract.grus.dev/v1");
  const Json widgets = Resource(list, "widgets");
  EXPECT_EQ(TextAt(widgets, "kind"), "Widget");
  EXPECT_EQ(TextAt(widgets, "singularName"), "widget");
  EXPECT_EQ(TextAt(widgets, "namespaced"), "true");
  EXPECT_EQ(TextAt(widgets, "shortNames"), R"(["wg"])");
  for (const char* verb : {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}) {
    EXPECT_THAT(TextAt(widgets, "verbs"), HasSubstr("\"" + std::string(verb) + "\""));
  }
  EXPECT_EQ(TextAt(Resource(list, "widgets/status"), "kind"), "Widget");
  EXPECT_EQ(TextAt(Resource(list, "widgets/scale"), "kind"), "Scale");
  EXPECT_EQ(TextAt(Resource(list, "widgets/scale"), "group"), "autoscaling");
}

TEST_F(Discovery, NamesThePreferredVersionOfAGroup) {
  const Answer group = Get("/apis/contract.grus.dev");

  EXPECT_EQ(group["kind"], "APIGroup");
  EXPECT_EQ(group["name"], "contract.grus.dev");
  EXPECT_EQ(group["preferredVersion.groupVersion"], "contract.grus.dev/v1");
}

TEST_F(Discovery, KnowsNoOtherGroup) {
  EXPECT_EQ(Get("/apis/not-there.dev").status, 404);
  EXPECT_EQ(Get("/apis/not-there.dev/v1").status, 404);
}

TEST_F(Discovery, ShowsThatACrdIsEstablished) {
  const Answer crd = Get(std::string(kCrds) + "/widgets.contract.grus.dev");

  EXPECT_EQ(crd.status, 200);
  EXPECT_EQ(crd["status.acceptedNames.kind"], "Widget");
  EXPECT_EQ(crd["status.acceptedNames.listKind"], "WidgetList");
  EXPECT_EQ(crd["status.storedVersions"], R"(["v1"])");
  EXPECT_EQ(crd["status.conditions.0.type"], "NamesAccepted");
  EXPECT_EQ(crd["status.conditions.1.type"], "Established");
  EXPECT_EQ(crd["status.conditions.1.status"], "True");
}

TEST_F(Discovery, RefusesACrdOfAnotherName) {
  Json crd = Get(std::string(kCrds) + "/widgets.contract.grus.dev").body;
  crd["metadata"] = J(R"({"name":"wrong.name"})");
  crd.Erase("status");

  EXPECT_TRUE(Refused(Post(kCrds, ToText(crd)), 422, "Invalid",
                      "CustomResourceDefinition.apiextensions.k8s.io \"wrong.name\" is invalid: metadata.name: Invalid "
                      "value: \"wrong.name\": must be spec.names.plural+\".\"+spec.group"));
}

// ---- Namespaces.

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

TEST_F(Ending, NamespacesLetWhatIsThereChange) {
  End();

  EXPECT_EQ(Merge(ConfigMaps() + "/held", R"({"data":{"a":"b"}})")["data.a"], "b");
}

TEST_F(Ending, NamespacesNeedAPlainName) {
  EXPECT_TRUE(Refused(Post("/api/v1/namespaces", R"({"metadata":{"name":"a.b"}})"), 422, "Invalid",
                      "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not contain dots"));
}

}  // namespace
}  // namespace kube::contract
