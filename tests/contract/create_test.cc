// SPDX-License-Identifier: Apache-2.0
// POST of a new object: what the server adds, and what it refuses.
#include "clientlib/model/time.h"
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class Creating : public Contract {};

TEST_F(Creating, AddsUidTimestampVersionAndNamespace) {
  const Answer made = MakeConfigMap("a", R"({"k":"v"})");

  EXPECT_EQ(made.http.Header("content-type"), "application/json");
  EXPECT_EQ(made["kind"], "ConfigMap");
  EXPECT_EQ(made["apiVersion"], "v1");
  EXPECT_EQ(made["metadata.namespace"], ns());
  EXPECT_EQ(made["data"], R"({"k":"v"})");
  EXPECT_THAT(made["metadata.uid"],
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_THAT(made["metadata.creationTimestamp"],
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"));
  EXPECT_THAT(made["metadata.resourceVersion"], MatchesRegex("[1-9][0-9]*"));
}

TEST_F(Creating, StartsGenerationAtOneWhereThereIsASpec) {
  EXPECT_EQ(MakeWidget("w")["metadata.generation"], "1");
  EXPECT_EQ(MakeConfigMap("c")["metadata.generation"], "(none)");
}

TEST_F(Creating, VersionsGrowAcrossKinds) {
  const std::uint64_t first = std::stoull(MakeConfigMap("a")["metadata.resourceVersion"]);
  const std::uint64_t second = std::stoull(MakeWidget("b")["metadata.resourceVersion"]);
  const std::uint64_t third = std::stoull(MakeConfigMap("c")["metadata.resourceVersion"]);

  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST_F(Creating, AppendsFiveCharactersToGenerateName) {
  const Answer first = Post(ConfigMaps(), R"({"metadata":{"generateName":"gen-"}})");
  const Answer second = Post(ConfigMaps(), R"({"metadata":{"generateName":"gen-"}})");

  EXPECT_EQ(first.status, 201);
  EXPECT_THAT(first["metadata.name"], MatchesRegex("gen-[bcdfghjklmnpqrstvwxz2456789]{5}"));
  EXPECT_EQ(first["metadata.generateName"], "gen-");
  EXPECT_NE(first["metadata.name"], second["metadata.name"]);
  EXPECT_EQ(MakeConfigMap("own", "{}", R"({"generateName":"gen-"})")["metadata.name"], "own") << "a name comes first";
}

TEST_F(Creating, IgnoresServerFieldsOfTheClient) {
  const Answer made = MakeWidget("w", R"({"size":1})",
                                 R"({"uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","generation":7,
                                     "deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x"})");

  EXPECT_NE(made["metadata.uid"], "mine");
  EXPECT_THAT(made["metadata.creationTimestamp"], ::testing::Not(StartsWith("2001")));
  EXPECT_EQ(made["metadata.generation"], "1");
  EXPECT_EQ(made["metadata.deletionTimestamp"], "(none)");
  EXPECT_EQ(made["metadata.selfLink"], "(none)");
}

TEST_F(Creating, IgnoresStatusWhereThatIsASubresource) {
  const Answer made = Post(Widgets(), R"({"apiVersion":"contract.grus.dev/v1","kind":"Widget",
      "metadata":{"name":"w"},"spec":{"size":1},"status":{"phase":"x"}})");

  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made["status"], "(none)");
}

TEST_F(Creating, RefusesANameTwice) {
  MakeConfigMap("a");
  MakeWidget("w");

  const Answer again = Post(ConfigMaps(), ConfigMap("a"));
  EXPECT_TRUE(Refused(again, 409, "AlreadyExists", "configmaps \"a\" already exists"));
  EXPECT_EQ(again["details"], R"({"name":"a","kind":"configmaps"})");
  const Answer widget = Post(Widgets(), Widget("w"));
  EXPECT_TRUE(Refused(widget, 409, "AlreadyExists", "widgets.contract.grus.dev \"w\" already exists"));
  EXPECT_EQ(widget.body.At({"details"})->Find("group")->AsString()->c_str(), std::string("contract.grus.dev"));
}

struct Refusal {
  const char* rule;
  std::string target, body;
  int status;
  const char *reason, *message;         // The message begins so.
  const char *path = "", *detail = "";  // Of the answer; none if empty.
};

TEST_F(Creating, RefusesWhatIsNoNewObjectOfItsKind) {
  const std::string maps = ConfigMaps(), widgets = Widgets();
  const std::string custom = R"({"apiVersion":"contract.grus.dev/v1","kind":)";
  constexpr char kBadName[] =
      ": metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
      "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
      "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
  const std::string bad_map = std::string("ConfigMap \"A\" is invalid") + kBadName;
  const std::string bad_widget = std::string("Widget.contract.grus.dev \"A\" is invalid") + kBadName;
  const Refusal refusals[] = {
      {"a namespace that is not there", "/api/v1/namespaces/not-there/configmaps", ConfigMap("a"), 404, "NotFound",
       "namespaces \"not-there\" not found", "details", R"({"name":"not-there","kind":"namespaces"})"},
      {"no name", maps, R"({"metadata":{}})", 422, "Invalid",
       "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
       "details.causes.0.reason", "FieldValueRequired"},
      {"no name, by its field", maps, R"({"metadata":{}})", 422, "Invalid", "", "details.causes.0.field",
       "metadata.name"},
      {"a bad name", maps, ConfigMap("A"), 422, "Invalid", bad_map.c_str(), "details.causes.0.reason",
       "FieldValueInvalid"},
      {"a bad name of a custom one", widgets, Widget("A"), 422, "Invalid", bad_widget.c_str()},
      {"a bad label", widgets, Widget("w", R"({"size":1})", R"({"labels":{"a b":"c"}})"), 422, "Invalid",
       "Widget.contract.grus.dev \"w\" is invalid: metadata.labels: Invalid value: \"a b\": name part must consist of "
       "alphanumeric characters",
       "details.causes.0.field", "metadata.labels"},
      {"a bad value of a label", maps, ConfigMap("c", "{}", R"({"labels":{"a":"c d"}})"), 422, "Invalid",
       "ConfigMap \"c\" is invalid: metadata.labels: Invalid value: \"c d\": a valid label must be an empty string or "
       "consist of alphanumeric characters"},
      {"another kind", maps, R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}})", 400, "BadRequest",
       "Secret in version \"v1\" cannot be handled as a ConfigMap"},
      {"another kind of the group", widgets, custom + R"("Other","metadata":{"name":"a"},"spec":{"size":1}})", 422,
       "Invalid", "Other.contract.grus.dev \"a\" is invalid: kind: Invalid value: \"Other\": must be Widget"},
      {"another version", maps, R"({"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"a"}})", 400,
       "BadRequest",
       "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version "
       "\"apps/v1\""},
      {"another namespace", maps, ConfigMap("a", "{}", R"({"namespace":"other"})"), 400, "BadRequest",
       "the namespace of the provided object does not match the namespace sent on the request"},
      {"a text that is no JSON", maps, R"({"metadata":)", 400, "BadRequest",
       "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error"},
      {"a list", maps, "[]", 400, "BadRequest", ""},
      {"nothing", maps, "", 400, "BadRequest", ""},
      {"a member of another type", maps, R"({"metadata":{"name":"a"},"data":{"k":1}})", 400, "BadRequest",
       "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "},
      {"a version", maps, ConfigMap("a", "{}", R"({"resourceVersion":"5"})"), 500, "(none)",
       "resourceVersion should not be set on objects to be created"},
  };
  for (const Refusal& r : refusals) {
    SCOPED_TRACE(r.rule);
    const Answer answer = Post(r.target, r.body);
    EXPECT_EQ(answer.status, r.status);
    EXPECT_EQ(answer["reason"], r.reason);
    EXPECT_THAT(answer["message"], StartsWith(r.message));
    if (*r.path != '\0') {
      EXPECT_EQ(answer[r.path], r.detail);
    }
  }
}

TEST_F(Creating, TakesABuiltInWithoutKindButNoCustomOne) {
  EXPECT_EQ(Post(ConfigMaps(), R"({"metadata":{"name":"a"}})").status, 201);
  const Answer custom = Post(Widgets(), R"({"metadata":{"name":"a"},"spec":{"size":1}})");
  EXPECT_EQ(custom.status, 400);
  EXPECT_THAT(custom["message"], StartsWith("the object provided is unrecognized (must be of type Widget): Object "
                                            "'Kind' is missing in"));
}

TEST_F(Creating, RefusesResourcesThatAreNotThere) {
  const Answer core = Get("/api/v1/namespaces/" + ns() + "/nothings");
  EXPECT_TRUE(Refused(core, 404, "NotFound", "the server could not find the requested resource"));
  for (const std::string path : {"/apis/not-there.dev/v1/things", "/apis/contract.grus.dev/v9/widgets",
                                 "/apis/contract.grus.dev/v1/gadgets", "/not-there"}) {
    const Answer answer = Get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.http.body, "404 page not found\n") << path;
    EXPECT_EQ(answer.http.Header("content-type"), "text/plain; charset=utf-8") << path;
  }
}

TEST_F(Creating, StoresNothingInADryRun) {
  const Answer dry = Post(Widgets() + "?dryRun=All", Widget("w"));

  EXPECT_EQ(dry.status, 201);
  EXPECT_EQ(dry["spec.color"], "red");  // Defaults are shown.
  EXPECT_NE(dry["metadata.uid"], "(none)");
  EXPECT_EQ(dry["metadata.resourceVersion"], "(none)");
  EXPECT_EQ(Get(Widgets() + "/w").status, 404);
  EXPECT_EQ(Post(Widgets() + "?dryRun=All", Widget("w", R"({"size":101})")).status, 422);
}

TEST_F(Creating, WarnsOfUnknownFieldsOfBuiltInsOrRefusesThem) {
  const auto text = [](const std::string& name) { return R"({"metadata":{"name":")" + name + R"("},"foo":1})"; };
  for (const std::string query : {"", "?fieldValidation=Warn"}) {
    const Answer answer = Post(ConfigMaps() + query, text("a" + std::to_string(query.size())));
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer["foo"], "(none)");
    EXPECT_THAT(answer.Warnings(), ElementsAre(R"(299 - "unknown field \"foo\"")"));
  }
  EXPECT_THAT(Post(ConfigMaps() + "?fieldValidation=Ignore", text("b")).Warnings(), IsEmpty());
  EXPECT_TRUE(Refused(Post(ConfigMaps() + "?fieldValidation=Strict", text("c")), 400, "BadRequest",
                      "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown "
                      "field \"foo\""));
}

}  // namespace
}  // namespace kube::contract
