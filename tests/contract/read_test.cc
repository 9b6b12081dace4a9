// SPDX-License-Identifier: Apache-2.0
// GET of one object and of collections: selectors, pages, versions.
#include "clientlib/http/url.h"
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Reading : public Contract {
 protected:
  std::vector<std::string> Labelled(const std::string& selector) {
    return Get(Widgets() + "?labelSelector=" + EscapeQueryValue(selector)).Names();
  }
  std::vector<std::string> Fielded(const std::string& selector) {
    return Get(Widgets() + "?fieldSelector=" + EscapeQueryValue(selector)).Names();
  }
  void MakeThree() {
    MakeWidget("a", R"({"size":1})", R"({"labels":{"app":"x","tier":"1"}})");
    MakeWidget("b", R"({"size":1})", R"({"labels":{"app":"y"}})");
    MakeWidget("c");
  }
  std::string kTooLarge = "999999999999";
};

TEST_F(Reading, SaysWhatIsNotThere) {
  const Answer map = Get(ConfigMaps() + "/none");
  EXPECT_TRUE(Refused(map, 404, "NotFound", "configmaps \"none\" not found"));
  EXPECT_EQ(map["details"], R"({"name":"none","kind":"configmaps"})");
  const Answer widget = Get(Widgets() + "/none");
  EXPECT_TRUE(Refused(widget, 404, "NotFound", "widgets.contract.grus.dev \"none\" not found"));
  EXPECT_EQ(widget["details"], R"({"name":"none","group":"contract.grus.dev","kind":"widgets"})");
}

TEST_F(Reading, ListsInTheOrderOfNames) {
  for (const char* name : {"c", "a", "b", "a-1"}) MakeWidget(name);

  const Answer list = Get(Widgets());

  EXPECT_EQ(list.status, 200);
  EXPECT_EQ(list["kind"], "WidgetList");
  EXPECT_EQ(list["apiVersion"], "contract.grus.dev/v1");
  EXPECT_THAT(list.Names(), ElementsAre("a", "a-1", "b", "c"));
  EXPECT_EQ(list["items.0.kind"], "Widget");
}

TEST_F(Reading, ListsNothingAsAnEmptyArray) {
  const Answer list = Get(Secrets());
  EXPECT_EQ(list["kind"], "SecretList");
  EXPECT_EQ(list["items"], "[]");
  EXPECT_NE(list["metadata.resourceVersion"], "(none)");
  EXPECT_EQ(Get("/api/v1/namespaces/not-there/secrets")["items"], "[]");
}

TEST_F(Reading, ListsOneNamespaceOrAll) {
  const std::string other = MakeNamespace();
  MakeWidget("mine");
  ASSERT_EQ(Post("/apis/contract.grus.dev/v1/namespaces/" + other + "/widgets", Widget("theirs")).status, 201);

  EXPECT_THAT(Get(Widgets()).Names(), ElementsAre("mine"));
  EXPECT_THAT(Get("/apis/contract.grus.dev/v1/widgets").Names(), ::testing::IsSupersetOf({"mine", "theirs"}));
}

TEST_F(Reading, SelectsByLabels) {
  MakeThree();

  EXPECT_THAT(Labelled("app=x"), ElementsAre("a"));
  EXPECT_THAT(Labelled("app==x"), ElementsAre("a"));
  EXPECT_THAT(Labelled("app!=x"), ElementsAre("b", "c"));
  EXPECT_THAT(Labelled("app in (x,y)"), ElementsAre("a", "b"));
  EXPECT_THAT(Labelled("app notin (x)"), ElementsAre("b", "c"));
  EXPECT_THAT(Labelled("app"), ElementsAre("a", "b"));
  EXPECT_THAT(Labelled("!app"), ElementsAre("c"));
  EXPECT_THAT(Labelled("app,!tier"), ElementsAre("b"));
  EXPECT_THAT(Labelled("tier>0"), ElementsAre("a"));
  EXPECT_THAT(Labelled("tier<1"), IsEmpty());
}

TEST_F(Reading, SelectsByFields) {
  MakeThree();

  EXPECT_THAT(Fielded("metadata.name=a"), ElementsAre("a"));
  EXPECT_THAT(Fielded("metadata.name==a"), ElementsAre("a"));
  EXPECT_THAT(Fielded("metadata.name!=a,metadata.namespace=" + ns()), ElementsAre("b", "c"));
  EXPECT_THAT(Fielded("metadata.namespace=other"), IsEmpty());
}

TEST_F(Reading, GoesOnFromPageToPage) {
  MakeThree();

  const Answer first = Get(Widgets() + "?limit=1");
  const Answer second = Get(Widgets() + "?limit=1&continue=" + EscapeQueryValue(first["metadata.continue"]));
  const Answer rest = Get(Widgets() + "?limit=5&continue=" + EscapeQueryValue(second["metadata.continue"]));

  EXPECT_THAT(first.Names(), ElementsAre("a"));
  EXPECT_EQ(first["metadata.remainingItemCount"], "2");
  EXPECT_THAT(second.Names(), ElementsAre("b"));
  EXPECT_EQ(second["metadata.remainingItemCount"], "1");
  EXPECT_THAT(rest.Names(), ElementsAre("c"));
  EXPECT_EQ(rest["metadata.remainingItemCount"], "(none)");
  EXPECT_THAT(rest["metadata.continue"], ::testing::AnyOf("", "(none)"));
}

TEST_F(Reading, ShowsOneSnapshotOnAllPages) {
  MakeThree();
  const Answer first = Get(Widgets() + "?limit=1");

  Delete(Widgets() + "/b");
  MakeWidget("d");
  const Answer rest = Get(Widgets() + "?limit=5&continue=" + EscapeQueryValue(first["metadata.continue"]));

  EXPECT_THAT(rest.Names(), ElementsAre("b", "c"));
  EXPECT_EQ(rest["metadata.resourceVersion"], first["metadata.resourceVersion"]);
}

TEST_F(Reading, ListsNotOlderThanAVersion) {
  const std::string version = MakeWidget("a")["metadata.resourceVersion"];

  for (const std::string match : {"", "&resourceVersionMatch=NotOlderThan"}) {
    const Answer list = Get(Widgets() + "?resourceVersion=" + version + match);
    EXPECT_THAT(list.Names(), ElementsAre("a"));
    EXPECT_GE(std::stoull(list["metadata.resourceVersion"]), std::stoull(version));
  }
}

TEST_F(Reading, SaysThatAVersionIsTooLarge) {
  MakeWidget("a");

  for (const std::string& target :
       {Widgets() + "?resourceVersion=" + kTooLarge, Widgets() + "/a?resourceVersion=" + kTooLarge,
        Widgets() + "?resourceVersionMatch=Exact&resourceVersion=" + kTooLarge}) {
    const Answer answer = Get(target);
    EXPECT_EQ(answer.status, 504) << target;
    EXPECT_EQ(answer["reason"], "Timeout");
    EXPECT_THAT(answer["message"], StartsWith("Timeout: Too large resource version: " + kTooLarge + ", current: "));
    EXPECT_EQ(answer["details"],
              R"({"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],)"
              R"("retryAfterSeconds":1})");
    EXPECT_EQ(answer.http.Header("retry-after"), "1");
  }
}

}  // namespace
}  // namespace kube::contract
