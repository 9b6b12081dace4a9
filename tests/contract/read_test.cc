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

TEST_F(Reading, SaysTheObjectIsNotThereWhereTheNamespaceIsNot) {
  EXPECT_TRUE(Refused(Get("/api/v1/namespaces/not-there/configmaps/a"), 404, "NotFound", "configmaps \"a\" not found"));
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

TEST_F(Reading, ListsAtAVersionNotBeforeTheLastWrite) {
  const std::string made = MakeWidget("a")["metadata.resourceVersion"];

  EXPECT_GE(std::stoull(Version(Widgets())), std::stoull(made));
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

TEST_F(Reading, RefusesABrokenLabelSelector) {
  EXPECT_TRUE(Refused(Get(Widgets() + "?labelSelector=" + EscapeQueryValue("app in (x")), 400, "BadRequest",
                      "unable to parse requirement: found '', expected: ',' or ')'"));
}

TEST_F(Reading, SelectsByFields) {
  MakeThree();

  EXPECT_THAT(Fielded("metadata.name=a"), ElementsAre("a"));
  EXPECT_THAT(Fielded("metadata.name==a"), ElementsAre("a"));
  EXPECT_THAT(Fielded("metadata.name!=a,metadata.namespace=" + ns()), ElementsAre("b", "c"));
  EXPECT_THAT(Fielded("metadata.namespace=other"), IsEmpty());
}

TEST_F(Reading, RefusesFieldsThatCannotBeSelected) {
  EXPECT_TRUE(Refused(Get(Widgets() + "?fieldSelector=spec.color%3Dred"), 400, "BadRequest",
                      "field label not supported: spec.color"));
  EXPECT_TRUE(Refused(Get(ConfigMaps() + "?fieldSelector=data.x%3Dred"), 400, "BadRequest",
                      "\"data.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""));
  EXPECT_TRUE(Refused(Get(Widgets() + "?fieldSelector=metadata.name"), 400, "BadRequest",
                      "invalid selector: 'metadata.name'; can't understand 'metadata.name'"));
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

TEST_F(Reading, CountsNoRemainderWithASelector) {
  MakeThree();

  const Answer page = Get(Widgets() + "?limit=1&labelSelector=app");

  EXPECT_THAT(page.Names(), ElementsAre("a"));
  EXPECT_NE(page["metadata.continue"], "(none)");
  EXPECT_EQ(page["metadata.remainingItemCount"], "(none)");
}

TEST_F(Reading, IgnoresLimitAtVersionZero) {
  MakeThree();
  Get(Widgets() + "?resourceVersion=" + Version(Widgets()));  // Answered once the server's cache is there.

  EXPECT_THAT(Get(Widgets() + "?limit=1&resourceVersion=0").Names(), ElementsAre("a", "b", "c"));
}

TEST_F(Reading, RefusesABrokenContinueToken) {
  const Answer answer = Get(Widgets() + "?limit=1&continue=xyz");

  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer["reason"], "BadRequest");
  EXPECT_THAT(answer["message"], StartsWith("invalid continue token: continue key is not valid: "));
}

TEST_F(Reading, RefusesAVersionBesideAContinueToken) {
  MakeThree();
  const std::string token = EscapeQueryValue(Get(Widgets() + "?limit=1")["metadata.continue"]);

  EXPECT_TRUE(Refused(Get(Widgets() + "?resourceVersion=1&continue=" + token), 400, "BadRequest",
                      "specifying resource version is not allowed when using continue"));
  EXPECT_EQ(Get(Widgets() + "?resourceVersion=0&continue=" + token).status, 200);
}

TEST_F(Reading, RefusesALimitThatIsNoNumber) {
  EXPECT_TRUE(
      Refused(Get(Widgets() + "?limit=x"), 400, "BadRequest", "strconv.ParseInt: parsing \"x\": invalid syntax"));
}

TEST_F(Reading, ListsExactlyAnOldVersion) {
  MakeWidget("a", R"({"size":1})");
  const std::string version = Version(Widgets());
  Merge(Widgets() + "/a", R"({"spec":{"size":2}})");
  MakeWidget("b");

  const Answer list = Get(Widgets() + "?resourceVersionMatch=Exact&resourceVersion=" + version);

  EXPECT_THAT(list.Names(), ElementsAre("a"));
  EXPECT_EQ(list["items.0.spec.size"], "1");
  EXPECT_EQ(list["metadata.resourceVersion"], version);
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

TEST_F(Reading, RefusesAVersionThatIsNoNumber) {
  EXPECT_TRUE(Refused(Get(Widgets() + "?resourceVersion=abc"), 400, "BadRequest",
                      "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing "
                      "\"abc\": invalid syntax"));
}

TEST_F(Reading, RefusesMatchesThatMakeNoSense) {
  struct Case {
    const char *query, *message;
  };
  for (const Case& c : {Case{"resourceVersionMatch=Exact&resourceVersion=0",
                             "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""},
                        Case{"resourceVersionMatch=Exact",
                             "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"},
                        Case{"resourceVersionMatch=Foo&resourceVersion=1",
                             "Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\""}}) {
    const Answer answer = Get(Widgets() + "?" + c.query);
    EXPECT_TRUE(Refused(answer, 422, "Invalid",
                        std::string("ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: ") + c.message));
    EXPECT_EQ(answer["details.group"], "meta.k8s.io");
    EXPECT_EQ(answer["details.causes.0.field"], "resourceVersionMatch");
  }
}

TEST_F(Reading, RefusesInitialEventsInAList) {
  const Answer answer = Get(Widgets() + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan");

  EXPECT_EQ(answer.status, 422);
  EXPECT_EQ(answer["details.causes.1.message"], "Forbidden: sendInitialEvents is forbidden for list");
}

TEST_F(Reading, IgnoresWatchOnOneObject) {
  MakeWidget("a");

  const Answer answer = Get(Widgets() + "/a?watch=true&timeoutSeconds=1");

  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer["kind"], "Widget");
}

TEST_F(Reading, ShowsOnlyMetadataIfAskedTo) {
  MakeWidget("a", R"({"size":1})", R"({"labels":{"k":"v"}})");
  HttpRequest request{.target = Widgets()};
  request.headers = {{"Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}};

  const Json list = J(transport().Send(request, {})->body);

  EXPECT_EQ(TextAt(list, "kind"), "PartialObjectMetadataList");
  EXPECT_EQ(TextAt(list, "apiVersion"), "meta.k8s.io/v1");
  EXPECT_EQ(TextAt(list, "items.0.kind"), "PartialObjectMetadata");
  EXPECT_EQ(TextAt(list, "items.0.metadata.labels.k"), "v");
  EXPECT_EQ(TextAt(list, "items.0.spec"), "(none)");
}

}  // namespace
}  // namespace kube::contract
