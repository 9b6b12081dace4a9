// SPDX-License-Identifier: Apache-2.0
// The wire of each verb: request line, headers and body are the contract. Retries are in
// client_retry_test.cc.
#include "clientlib/client/client.h"

#include "tests/clientlib/client/client_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ClientTest, GetReadsOneObject) {
  transport_.Expect("GET", "/", MapAnswer());

  Result<std::shared_ptr<ConfigMap>> got = client().Get<ConfigMap>({"team-a", "a"});

  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ((*got)->metadata.resource_version, "7");
  EXPECT_EQ((*got)->data.at("x"), "1");
  EXPECT_EQ(Last().method, "GET");
  EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/configmaps/a");
  EXPECT_EQ(Last().body, "");
}

TEST_F(ClientTest, A5EachRequestSaysWhoAsks) {
  options_.headers = {{"Impersonate-User", "jane"}, {"Impersonate-Group", "a"}, {"Impersonate-Group", "b"}};
  transport_.Expect("GET", "/", MapAnswer());

  ASSERT_TRUE(client().Get(kMaps, {"team-a", "a"}));

  EXPECT_THAT(LastHeader("User-Agent"), ElementsAre("grus/0.1"));
  EXPECT_THAT(LastHeader("Authorization"), ElementsAre("Bearer token-0"));
  EXPECT_THAT(LastHeader("Impersonate-User"), ElementsAre("jane"));
  EXPECT_THAT(LastHeader("Impersonate-Group"), ElementsAre("a", "b"));
}

TEST_F(ClientTest, E4AClosedGateRefusesWritesAndLetsReadsThrough) {
  struct Gate final : WriteGate {
    Status MayWrite(const Kind& kind) const override {
      if (is_open) return {};
      return Error(ErrorCode::kCancelled, "not the leader, no " + std::string(kind.plural));
    }
    bool is_open = true;
  } gate;
  client().SetWriteGate(&gate);
  transport_.Handle("GET", "/", [](const HttpRequest&, const std::stop_token&) {
    return JsonAnswer(200, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"}})");
  });
  transport_.Handle("DELETE", "/", [](const HttpRequest&, const std::stop_token&) { return JsonAnswer(200, "{}"); });

  EXPECT_TRUE(client().Delete(kMaps, {"ns", "a"}));
  gate.is_open = false;
  const Status refused = client().Delete(kMaps, {"ns", "a"});
  EXPECT_TRUE(client().Get(kMaps, {"ns", "a"}));

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(refused.error().message(), "not the leader, no configmaps");
  EXPECT_EQ(transport_.requests().size(), 2u);
}

TEST_F(ClientTest, WithoutTokensNoAuthorizationIsSent) {
  Client bare(transport_, nullptr, clock_);
  transport_.Expect("GET", "/", MapAnswer());
  ASSERT_TRUE(bare.Get(kMaps, {"team-a", "a"}));
  EXPECT_THAT(LastHeader("Authorization"), IsEmpty());
}

TEST_F(ClientTest, ATokenThatCannotBeHadSendsNothing) {
  tokens_.failure_ = Error(ErrorCode::kUnauthorized, "plugin failed");
  Result<std::shared_ptr<Object>> got = client().Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message(), "plugin failed");
  EXPECT_THAT(transport_.requests(), IsEmpty());
}

TEST_F(ClientTest, RequestsUseTheClientsPoolAndTimeout) {
  options_.pool = HttpPool::kLease;
  options_.timeout = 5s;
  transport_.Expect("GET", "/", MapAnswer());
  ASSERT_TRUE(client().Get(kMaps, {"team-a", "a"}));
  EXPECT_EQ(Last().pool, HttpPool::kLease);
  EXPECT_EQ(Last().timeout, 5s);
}

TEST_F(ClientTest, ListWithoutOptionsHasNoQuery) {
  transport_.Expect("GET", "/", JsonAnswer(200, R"({"kind":"ConfigMapList","metadata":{},"items":[]})"));
  ASSERT_TRUE(client().List(kMaps, ""));
  EXPECT_EQ(Last().target, "/api/v1/configmaps");
}

TEST_F(ClientTest, ListSendsItsOptionsEscaped) {
  const std::string body = R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"more"},"items":[)" +
                           std::string(kMapText) + "]}";
  transport_.Expect("GET", "/", JsonAnswer(200, body));

  Result<ObjectList> list = client().List(kMaps, "team-a",
                                          {.label_selector = "app in (a,b)",
                                           .field_selector = "metadata.name=a",
                                           .resource_version = "5",
                                           .continue_token = "x/y=",
                                           .limit = 500});

  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(Last().target,
            "/api/v1/namespaces/team-a/configmaps?labelSelector=app%20in%20%28a%2Cb%29&"
            "fieldSelector=metadata.name%3Da&resourceVersion=5&continue=x%2Fy%3D&limit=500");
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0]->metadata.name, "a");
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->continue_token, "more");
}

TEST_F(ClientTest, CreatePostsToTheCollection) {
  transport_.Expect("POST", "/", JsonAnswer(201, std::string(kMapText)));

  Result<std::shared_ptr<Object>> created =
      client().Create(kMaps, "team-a", Json::MakeObject({{"metadata", Json::MakeObject({{"name", "a"}})}}));

  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ((*created)->metadata.uid, "u-1");
  EXPECT_EQ(Last().method, "POST");
  EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/configmaps?fieldManager=grus-test");
  EXPECT_EQ(Last().body, R"({"metadata":{"name":"a"}})");
  EXPECT_THAT(LastHeader("Content-Type"), ElementsAre("application/json"));
}

TEST_F(ClientTest, F4ApplyPatchesWithItsFieldManager) {
  transport_.Expect("PATCH", "/", MapAnswer());

  ASSERT_TRUE(
      client().Apply(kMaps, {"team-a", "a"}, Json::MakeObject({{"data", Json::MakeObject({{"x", "1"}})}}),
                     {.subresource = "status", .field_manager = "grus-status", .force = true, .dry_run = true}));

  EXPECT_EQ(Last().method, "PATCH");
  EXPECT_EQ(Last().target,
            "/api/v1/namespaces/team-a/configmaps/a/status?fieldManager=grus-status&force=true&dryRun=All");
  EXPECT_EQ(Last().body, R"({"data":{"x":"1"}})");
  EXPECT_THAT(LastHeader("Content-Type"), ElementsAre("application/apply-patch+yaml"));
}

TEST_F(ClientTest, F4ApplyDoesNotForceUnlessTold) {
  transport_.Expect("PATCH", "/", MapAnswer());
  ASSERT_TRUE(client().Apply(kMaps, {"team-a", "a"}, Json::MakeObject()));
  EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/configmaps/a?fieldManager=grus-test");
}

TEST_F(ClientTest, AWriteMayAskForMetadataAlone) {
  transport_.Expect("PATCH", "/", JsonAnswer(200, R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",
                                                      "metadata":{"name":"a","namespace":"team-a","resourceVersion":"8"}})"));

  const auto patched =
      client().Patch(kMaps, {"team-a", "a"}, PatchType::kMerge, Json::MakeObject(), {.metadata_only = true});

  ASSERT_TRUE(patched) << patched.error().message();
  EXPECT_EQ((*patched)->metadata.resource_version, "8");
  EXPECT_THAT(LastHeader("Accept"), ElementsAre("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"));
}

TEST_F(ClientTest, PatchSaysItsType) {
  struct Case {
    PatchType type;
    std::string want;
  };
  for (const Case& c :
       {Case{PatchType::kJson, "application/json-patch+json"}, Case{PatchType::kMerge, "application/merge-patch+json"},
        Case{PatchType::kStrategicMerge, "application/strategic-merge-patch+json"}}) {
    transport_.Expect("PATCH", "/", MapAnswer());
    ASSERT_TRUE(client().Patch(kMaps, {"team-a", "a"}, c.type, Json::MakeArray()));
    EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/configmaps/a?fieldManager=grus-test");
    EXPECT_EQ(Last().body, "[]");
    EXPECT_THAT(LastHeader("Content-Type"), ElementsAre(c.want));
  }
}

TEST_F(ClientTest, DeleteSendsItsOptionsInTheBody) {
  transport_.Expect("DELETE", "/", StatusAnswer(200, "", ""));
  ASSERT_TRUE(client().Delete(kMaps, {"team-a", "a"}));
  EXPECT_EQ(Last().method, "DELETE");
  EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/configmaps/a");
  EXPECT_EQ(Last().body, R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})");
  EXPECT_THAT(LastHeader("Content-Type"), ElementsAre("application/json"));
}

TEST_F(ClientTest, W4DeleteSendsItsPreconditions) {
  transport_.Expect("DELETE", "/", StatusAnswer(200, "", ""));
  ASSERT_TRUE(
      client().Delete(kMaps, {"team-a", "a"},
                      {.uid = "u-1", .resource_version = "7", .grace_period_seconds = 0, .propagation = "Foreground"}));
  EXPECT_EQ(Last().body,
            R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground","gracePeriodSeconds":0,)"
            R"("preconditions":{"uid":"u-1","resourceVersion":"7"}})");
}

TEST_F(ClientTest, F2DeletingWhatIsGoneIsASuccess) {
  transport_.Expect("DELETE", "/", StatusAnswer(404, "NotFound", "configmaps \"a\" not found"));
  EXPECT_TRUE(client().Delete(kMaps, {"team-a", "a"}));
}

TEST_F(ClientTest, W4ADeletePreconditionThatDoesNotHoldIsAConflict) {
  transport_.Expect("DELETE", "/", StatusAnswer(409, "Conflict", "the UID in the precondition does not match"));
  const Status deleted = client().Delete(kMaps, {"team-a", "a"}, {.uid = "u-0"});
  ASSERT_FALSE(deleted);
  EXPECT_EQ(deleted.error().code(), ErrorCode::kConflict);
}

TEST_F(ClientTest, L7AWatchAsksForBookmarksAndATimeout) {
  transport_.ExpectStream("/");
  Result<std::unique_ptr<ByteStream>> stream =
      client().Watch(kMaps, "team-a", {.resource_version = "42", .timeout = 333s});
  ASSERT_TRUE(stream) << stream.error().message();
  EXPECT_EQ(Last().target,
            "/api/v1/namespaces/team-a/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds=333&"
            "resourceVersion=42");
  EXPECT_EQ(Last().pool, HttpPool::kWatch);
}

TEST_F(ClientTest, L9AWatchListAsksForInitialEvents) {
  transport_.ExpectStream("/");
  ASSERT_TRUE(client().Watch(
      kMaps, "", {.label_selector = "a=b", .field_selector = "c=d", .send_initial_events = true, .timeout = 300s}));
  EXPECT_EQ(Last().target,
            "/api/v1/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&labelSelector=a%3Db&"
            "fieldSelector=c%3Dd&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
}

TEST_F(ClientTest, AWatchThatIsRefusedIsAnError) {
  transport_.Expect("GET", "/", StatusAnswer(410, "Expired", "too old resource version"));
  Result<std::unique_ptr<ByteStream>> stream = client().Watch(kMaps, "", {});
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code(), ErrorCode::kGone);
  EXPECT_EQ(stream.error().message(), "too old resource version");
}

TEST_F(ClientTest, GetRawGivesTheBody) {
  transport_.Expect("GET", "/version", JsonAnswer(200, R"({"major":"1"})"));
  Result<std::string> body = client().GetRaw("/version");
  ASSERT_TRUE(body);
  EXPECT_EQ(*body, R"({"major":"1"})");
  EXPECT_EQ(Last().target, "/version");
}

TEST_F(ClientTest, AnAnswerOfAnotherKindIsAnError) {
  transport_.Expect("GET", "/", JsonAnswer(200, R"({"kind":"Pod","metadata":{}})"));
  Result<std::shared_ptr<Object>> got = client().Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kDecode);
  EXPECT_EQ(got.error().message(), "answer of the server: kind: expected ConfigMap, found Pod");
}

TEST_F(ClientTest, A5ARedirectIsNotASuccess) {
  transport_.Expect("GET", "/", HttpResponse{302, {{"location", "https://elsewhere"}}, ""});
  Result<std::shared_ptr<Object>> got = client().Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().http_status(), 302);
  EXPECT_EQ(transport_.requests().size(), 1u);
}

TEST_F(ClientTest, APodIsBoundAndAnnotatedInOneWrite) {
  transport_.Expect("POST", "/", StatusAnswer(201, "", ""));

  ASSERT_TRUE(client().Bind({"team-a", "p"}, "u-1", "n1", Json::MakeObject({{"key", "value"}})));

  EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/pods/p/binding");
  EXPECT_EQ(Last().body,
            R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","namespace":"team-a","uid":"u-1",)"
            R"("annotations":{"key":"value"}},"target":{"apiVersion":"v1","kind":"Node","name":"n1"}})");
}

TEST_F(ClientTest, TheObserverIsToldOfEachRequest) {
  transport_.Expect("GET", "/", MapAnswer());
  transport_.Expect("POST", "/", StatusAnswer(409, "AlreadyExists", "there"));
  transport_.Expect("POST", "/", MapAnswer());
  transport_.Expect("GET", "/", Error(ErrorCode::kUnavailable, "connection refused"));
  transport_.ExpectStream("/");
  ASSERT_TRUE(client().Get(kMaps, {"team-a", "a"}));
  ASSERT_FALSE(client().Create(kMaps, "team-a", Json::MakeObject()));
  ASSERT_TRUE(client().Create(kMaps, "team-a", Json::MakeObject(), {.dry_run = true}));
  ASSERT_FALSE(client().List(kMaps, ""));
  ASSERT_TRUE(client().Watch(kMaps, "", {}));
  EXPECT_THAT(observer_.seen_, ElementsAre("get configmaps 200", "create configmaps 409", "dry-run configmaps 200",
                                           "list configmaps 0", "watch configmaps 200"));
}

}  // namespace
}  // namespace kube::testing
