// SPDX-License-Identifier: Apache-2.0
// POST of a new object: what the server adds, and what it refuses.
#include "clientlib/model/time.h"
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
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

TEST_F(Creating, StoresWhatItAnswered) {
  const Answer made = MakeWidget("w");

  const Answer read = Get(Widgets() + "/w");

  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, made.body);
}

TEST_F(Creating, AppendsFiveCharactersToGenerateName) {
  const Answer first = Post(ConfigMaps(), R"({"metadata":{"generateName":"gen-"}})");
  const Answer second = Post(ConfigMaps(), R"({"metadata":{"generateName":"gen-"}})");

  EXPECT_EQ(first.status, 201);
  EXPECT_THAT(first["metadata.name"], MatchesRegex("gen-[bcdfghjklmnpqrstvwxz2456789]{5}"));
  EXPECT_EQ(first["metadata.generateName"], "gen-");
  EXPECT_NE(first["metadata.name"], second["metadata.name"]);
}

TEST_F(Creating, PrefersNameToGenerateName) {
  EXPECT_EQ(MakeConfigMap("own", "{}", R"({"generateName":"gen-"})")["metadata.name"], "own");
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

TEST_F(Creating, RefusesANamespaceThatIsNotThere) {
  const Answer answer = Post("/api/v1/namespaces/not-there/configmaps", ConfigMap("a"));

  EXPECT_TRUE(Refused(answer, 404, "NotFound", "namespaces \"not-there\" not found"));
  EXPECT_EQ(answer["details"], R"({"name":"not-there","kind":"namespaces"})");
}

TEST_F(Creating, RefusesNoName) {
  const Answer answer = Post(ConfigMaps(), R"({"metadata":{}})");

  EXPECT_TRUE(Refused(answer, 422, "Invalid",
                      "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"));
  EXPECT_EQ(answer["details.causes.0.reason"], "FieldValueRequired");
  EXPECT_EQ(answer["details.causes.0.field"], "metadata.name");
}

TEST_F(Creating, RefusesABadName) {
  const std::string rule =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
      "must "
      "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
      "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
  const Answer map = Post(ConfigMaps(), ConfigMap("A_b"));
  EXPECT_TRUE(
      Refused(map, 422, "Invalid", "ConfigMap \"A_b\" is invalid: metadata.name: Invalid value: \"A_b\": " + rule));
  EXPECT_EQ(map["details.kind"], "ConfigMap");
  EXPECT_EQ(map["details.causes.0.reason"], "FieldValueInvalid");
  EXPECT_TRUE(Refused(Post(Widgets(), Widget("A")), 422, "Invalid",
                      "Widget.contract.grus.dev \"A\" is invalid: metadata.name: Invalid value: \"A\": " + rule));
}

TEST_F(Creating, RefusesBadLabels) {
  const Answer key = Post(Widgets(), Widget("w", R"({"size":1})", R"({"labels":{"a b":"c"}})"));
  EXPECT_EQ(key.status, 422);
  EXPECT_EQ(key["details.causes.0.field"], "metadata.labels");
  EXPECT_THAT(key["message"], StartsWith("Widget.contract.grus.dev \"w\" is invalid: metadata.labels: Invalid "
                                         "value: \"a b\": name part must consist of alphanumeric characters"));
  const Answer value = Post(ConfigMaps(), ConfigMap("c", "{}", R"({"labels":{"a":"c d"}})"));
  EXPECT_EQ(value.status, 422);
  EXPECT_THAT(value["message"],
              StartsWith("ConfigMap \"c\" is invalid: metadata.labels: Invalid value: \"c d\": a valid label must "
                         "be an empty string or consist of alphanumeric characters"));
}

TEST_F(Creating, RefusesAnotherKind) {
  const Answer built_in = Post(ConfigMaps(), R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}})");
  EXPECT_EQ(built_in.status, 400);
  EXPECT_EQ(built_in["reason"], "BadRequest");
  EXPECT_THAT(built_in["message"], StartsWith("Secret in version \"v1\" cannot be handled as a ConfigMap"));

  const Answer custom = Post(Widgets(), R"({"apiVersion":"contract.grus.dev/v1","kind":"Other",
      "metadata":{"name":"a"},"spec":{"size":1}})");
  EXPECT_TRUE(Refused(custom, 422, "Invalid",
                      "Other.contract.grus.dev \"a\" is invalid: kind: Invalid value: \"Other\": must be Widget"));
}

TEST_F(Creating, RefusesAnotherVersion) {
  const Answer answer = Post(ConfigMaps(), R"({"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"a"}})");

  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer["message"], StartsWith("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: no kind "
                                            "\"ConfigMap\" is registered for version \"apps/v1\""));
}

TEST_F(Creating, TakesABuiltInWithoutKindButNoCustomOne) {
  EXPECT_EQ(Post(ConfigMaps(), R"({"metadata":{"name":"a"}})").status, 201);
  const Answer custom = Post(Widgets(), R"({"metadata":{"name":"a"},"spec":{"size":1}})");
  EXPECT_EQ(custom.status, 400);
  EXPECT_THAT(custom["message"], StartsWith("the object provided is unrecognized (must be of type Widget): Object "
                                            "'Kind' is missing in"));
}

TEST_F(Creating, RefusesAnotherNamespaceInTheBody) {
  for (const Answer& answer : {Post(ConfigMaps(), ConfigMap("a", "{}", R"({"namespace":"other"})")),
                               Post(Widgets(), Widget("a", R"({"size":1})", R"({"namespace":"other"})"))}) {
    EXPECT_TRUE(Refused(answer, 400, "BadRequest",
                        "the namespace of the provided object does not match the namespace sent on the request"));
  }
}

TEST_F(Creating, RefusesTextThatIsNoJson) {
  for (const auto& [target, kind] : {std::pair{ConfigMaps(), "ConfigMap"}, std::pair{Widgets(), "Widget"}}) {
    const Answer answer = Post(target, R"({"metadata":)");
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer["reason"], "BadRequest");
    EXPECT_THAT(answer["message"], StartsWith("the object provided is unrecognized (must be of type " +
                                              std::string(kind) + "): couldn't get version/kind; json parse error"));
  }
  EXPECT_EQ(Post(ConfigMaps(), "[]").status, 400);
  EXPECT_EQ(Post(ConfigMaps(), "").status, 400);
}

TEST_F(Creating, RefusesAMemberOfAnotherType) {
  const Answer answer = Post(ConfigMaps(), R"({"metadata":{"name":"a"},"data":{"k":1}})");

  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer["message"], StartsWith("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "));
}

TEST_F(Creating, RefusesAnotherContentType) {
  const Answer answer = Send("POST", ConfigMaps(), "a", "text/plain");

  EXPECT_EQ(answer.status, 415);
  EXPECT_EQ(answer["reason"], "UnsupportedMediaType");
}

TEST_F(Creating, RefusesAResourceVersion) {
  EXPECT_TRUE(Refused(Post(ConfigMaps(), ConfigMap("a", "{}", R"({"resourceVersion":"5"})")), 500, "(none)",
                      "resourceVersion should not be set on objects to be created"));
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

TEST_F(Creating, RefusesAVerbThatAResourceDoesNotHave) {
  MakeConfigMap("a");

  for (const Answer& answer :
       {Merge(ConfigMaps(), "{}"), Put(ConfigMaps(), J("{}")), Post(ConfigMaps() + "/a", "{}")}) {
    EXPECT_TRUE(
        Refused(answer, 405, "MethodNotAllowed", "the server does not allow this method on the requested resource"));
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

TEST_F(Creating, RefusesOptionsThatDoNotExist) {
  EXPECT_TRUE(Refused(Post(ConfigMaps() + "?dryRun=Some", ConfigMap("a")), 422, "Invalid",
                      "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported "
                      "values: \"All\""));
  EXPECT_TRUE(Refused(Post(ConfigMaps() + "?fieldValidation=Foo", ConfigMap("a")), 422, "Invalid",
                      "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Foo\": "
                      "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""));
  EXPECT_TRUE(Refused(Post(ConfigMaps() + "?fieldManager=" + std::string(129, 'x'), ConfigMap("a")), 422, "Invalid",
                      "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 "
                      "bytes"));
}

TEST_F(Creating, TakesTheLastOfTwoEqualKeysAndWarns) {
  const Answer map = Post(ConfigMaps(), R"({"metadata":{"name":"a"},"data":{"k":"1","k":"2"}})");
  EXPECT_EQ(map.status, 201);
  EXPECT_EQ(map["data.k"], "2");
  EXPECT_THAT(map.Warnings(), ElementsAre(R"(299 - "duplicate field \"data.k\"")"));

  const Answer widget = Post(Widgets(), R"({"apiVersion":"contract.grus.dev/v1","kind":"Widget",
      "metadata":{"name":"w"},"spec":{"size":1,"size":2}})");
  EXPECT_EQ(widget["spec.size"], "2");
  EXPECT_THAT(widget.Warnings(), ElementsAre(R"(299 - "duplicate field \"spec.size\"")"));
}

TEST_F(Creating, RefusesTwoEqualKeysIfStrict) {
  EXPECT_TRUE(
      Refused(Post(ConfigMaps() + "?fieldValidation=Strict", R"({"metadata":{"name":"a"},"data":{"k":"1","k":"2"}})"),
              400, "BadRequest",
              "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate "
              "field \"data.k\""));
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

TEST_F(Creating, RefusesMoreThanThreeMebibytes) {
  const std::string text = R"({"metadata":{"name":"a"},"data":{"k":")" + std::string(3 << 20, 'x') + R"("}})";

  EXPECT_TRUE(
      Refused(Post(ConfigMaps(), text), 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"));
}

TEST_F(Creating, WarnsOfFinalizersWithoutADomain) {
  const Answer answer = MakeWidget("w", R"({"size":1})", R"({"finalizers":["hold"]})");

  EXPECT_THAT(answer.Warnings(), Contains(HasSubstr("prefer a domain-qualified finalizer name")));
  Merge(Widgets() + "/w", R"({"metadata":{"finalizers":null}})");
}

}  // namespace
}  // namespace kube::contract
