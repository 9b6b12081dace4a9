// SPDX-License-Identifier: Apache-2.0
// Watch streams: where they begin, what they tell, how they end.
#include "clientlib/http/url.h"
#include "tests/contract/server.h"

namespace kube::contract {
namespace {

using ::testing::StartsWith;

constexpr const char* kInitial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

class Watching : public Contract {
 protected:
  std::string W() { return Widgets() + "/w"; }
  std::string From(const std::string& version) { return Widgets() + "?resourceVersion=" + version; }
  static bool EndsInitialEvents(const Event& event) {
    const Json* end = event.object.At({"metadata", "annotations", "k8s.io/initial-events-end"});
    return event.type == "BOOKMARK" && end != nullptr && *end == Json("true");
  }
  // A stream that soon ends by itself, though not before a slow server has sent what there is: for tests that nothing
  // more comes.
  Stream Short(const std::string& target) { return Watch(target + "&timeoutSeconds=3"); }
};

TEST_F(Watching, TellsWhatCameAfterAVersion) {
  MakeWidget("before");
  const std::string version = Version(Widgets());
  const Answer made = MakeWidget("w");
  const Answer changed = Merge(W(), R"({"spec":{"size":2}})");

  Stream stream = Watch(From(version));

  const Event added = stream.Next();
  EXPECT_EQ(added.type, "ADDED");
  EXPECT_EQ(added.object, made.body);
  const Event modified = stream.Next();
  EXPECT_EQ(modified.type, "MODIFIED");
  EXPECT_EQ(modified.object, changed.body);
}

TEST_F(Watching, TellsWhatComesLater) {
  Stream stream = Watch(From(Version(Widgets())));
  ASSERT_EQ(stream.status(), 200);
  EXPECT_EQ(stream.refusal().http.Header("content-type"), "application/json");

  const Answer made = MakeWidget("w");

  EXPECT_EQ(stream.Next().object, made.body);
}

TEST_F(Watching, TellsTheLastStateOfADeletedObjectAtANewVersion) {
  const Answer made = MakeWidget("w");
  Stream stream = Watch(From(made["metadata.resourceVersion"]));

  Delete(W());

  const Event deleted = stream.Next();
  EXPECT_EQ(deleted.type, "DELETED");
  EXPECT_GT(std::stoull(deleted["metadata.resourceVersion"]), std::stoull(made["metadata.resourceVersion"]));
  Json state = deleted.object;
  state["metadata"]["resourceVersion"] = made["metadata.resourceVersion"];
  EXPECT_EQ(state, made.body);
}

TEST_F(Watching, TellsOfAnObjectThatWaitsForItsFinalizer) {
  const Answer made = MakeWidget("w", R"({"size":1})", R"({"finalizers":["grus.dev/hold"]})");
  Stream stream = Watch(From(made["metadata.resourceVersion"]));

  Delete(W());
  const Event waiting = stream.Next();
  EXPECT_EQ(waiting.type, "MODIFIED");
  EXPECT_NE(waiting["metadata.deletionTimestamp"], "(none)");

  Merge(W(), R"({"metadata":{"finalizers":null}})");
  const Event deleted = stream.Next();
  EXPECT_EQ(deleted.type, "DELETED");
  EXPECT_EQ(deleted["metadata.finalizers"], R"(["grus.dev/hold"])");  // What was stored, not what was sent.
  EXPECT_GT(std::stoull(deleted["metadata.resourceVersion"]), std::stoull(waiting["metadata.resourceVersion"]));
}

TEST_F(Watching, SaysNothingOfAWriteThatChangesNothing) {
  const Answer made = MakeWidget("w");
  Stream stream = Watch(From(made["metadata.resourceVersion"]));

  Put(W(), made.body);
  Merge(W(), R"({"spec":{"size":2}})");

  EXPECT_EQ(stream.Next()["spec.size"], "2");
}

TEST_F(Watching, SaysNothingOfADryRun) {
  Stream stream = Watch(From(Version(Widgets())));

  Post(Widgets() + "?dryRun=All", Widget("dry"));
  MakeWidget("w");

  EXPECT_EQ(stream.Next().Summary(), "ADDED w");
}

TEST_F(Watching, BeginsWithWhatIsThereWithoutAVersionOrAtZero) {
  MakeWidget("a");
  MakeWidget("b");

  for (const std::string query : {"?resourceVersion=0", "?resourceVersion=", "?"}) {
    Stream stream = Watch(Widgets() + query);
    std::vector<std::string> both = {stream.Next().Summary(), stream.Next().Summary()};
    EXPECT_THAT(both, ::testing::UnorderedElementsAre("ADDED a", "ADDED b")) << query;
    Merge(Widgets() + "/a", R"({"metadata":{"labels":{"q":")" + std::to_string(query.size()) + R"("}}})");
    EXPECT_EQ(stream.Next().Summary(), "MODIFIED a") << query;
  }
}

TEST_F(Watching, SelectsByLabelsAndTellsComingAndGoing) {
  Stream stream = Watch(From(Version(Widgets())) + "&labelSelector=k%3D1");
  MakeWidget("other", R"({"size":1})", R"({"labels":{"k":"2"}})");
  MakeWidget("w", R"({"size":1})", R"({"labels":{"k":"1"}})");
  EXPECT_EQ(stream.Next().Summary(), "ADDED w");

  const Answer gone = Merge(W(), R"({"metadata":{"labels":{"k":"2"}}})");
  const Event left = stream.Next();
  EXPECT_EQ(left.Summary(), "DELETED w");
  EXPECT_EQ(left["metadata.labels.k"], "1");                                      // As it last matched,
  EXPECT_EQ(left["metadata.resourceVersion"], gone["metadata.resourceVersion"]);  // but at the new version.

  Merge(W(), R"({"metadata":{"labels":{"k":"1"}}})");
  EXPECT_EQ(stream.Next().Summary(), "ADDED w");
  Merge(W(), R"({"spec":{"size":2}})");
  EXPECT_EQ(stream.Next().Summary(), "MODIFIED w");
  Delete(W());
  EXPECT_EQ(stream.Next().Summary(), "DELETED w");
}

TEST_F(Watching, SelectsOneName) {
  Stream stream = Watch(From(Version(Widgets())) + "&fieldSelector=metadata.name%3Dw");

  MakeWidget("v");
  MakeWidget("w");

  EXPECT_EQ(stream.Next().Summary(), "ADDED w");
}

TEST_F(Watching, WatchesOneNamespaceOrAll) {
  const std::string other = "/apis/contract.grus.dev/v1/namespaces/" + MakeNamespace() + "/widgets";
  // Objects of tests before may still be on their way out.
  const std::string version = Version(Widgets()), label = R"({"labels":{"test":")" + ns() + R"("}})";
  Stream mine = Watch(From(version));
  Stream all = Watch("/apis/contract.grus.dev/v1/widgets?resourceVersion=" + version + "&labelSelector=test%3D" + ns());

  ASSERT_EQ(Post(other, Widget("theirs", R"({"size":1})", label)).status, 201);
  MakeWidget("mine", R"({"size":1})", label);

  EXPECT_EQ(mine.Next().Summary(), "ADDED mine");
  EXPECT_EQ(all.Next().Summary(), "ADDED theirs");
  EXPECT_EQ(all.Next().Summary(), "ADDED mine");
}

TEST_F(Watching, TellsVersionsInTheirOrder) {
  const std::string version = Version(Widgets());
  for (int i = 0; i < 10; ++i) MakeWidget("w" + std::to_string(i));
  for (int i = 9; i >= 0; --i) Delete(Widgets() + "/w" + std::to_string(i));

  Stream stream = Watch(From(version));

  std::uint64_t last = std::stoull(version);
  for (int i = 0; i < 20; ++i) {
    const Event event = stream.Next();
    EXPECT_EQ(event.type, i < 10 ? "ADDED" : "DELETED");
    const std::uint64_t next = std::stoull(event["metadata.resourceVersion"]);
    EXPECT_GT(next, last);
    last = next;
  }
}

TEST_F(Watching, GoesOnFromTheVersionOfABookmarkOrList) {
  MakeWidget("a");
  Stream first = Watch(Widgets() + "?" + kInitial);
  EXPECT_EQ(first.Next().Summary(), "ADDED a");
  const Event bookmark = first.Next();
  MakeWidget("b");

  Stream second = Watch(From(bookmark["metadata.resourceVersion"]));

  EXPECT_EQ(second.Next().Summary(), "ADDED b");
}

TEST_F(Watching, EndsRegularlyAfterTimeoutSeconds) {
  MakeWidget("w");
  Stream stream = Short(Widgets() + "?resourceVersion=0");

  EXPECT_EQ(stream.Next().Summary(), "ADDED w");
  EXPECT_EQ(stream.Next().type, Event::kEnd);
}

// A client cannot count on bookmarks while nothing happens: the one before the timeout is left out as well.
TEST_F(Watching, SendsNoBookmarkOfTheVersionItBeganAt) {
  const std::string version = MakeWidget("w")["metadata.resourceVersion"];
  Stream stream = Short(From(version) + "&allowWatchBookmarks=true");

  Event event = stream.Next();
  for (; event.type == "BOOKMARK"; event = stream.Next()) {
    EXPECT_GT(std::stoull(event["metadata.resourceVersion"]), std::stoull(version));
  }
  EXPECT_EQ(event.type, Event::kEnd);
}

TEST_F(Watching, MarksTheEndOfInitialEvents) {
  MakeWidget("a");
  const std::string version = MakeWidget("b")["metadata.resourceVersion"];

  for (const std::string& start : {std::string(), std::string("0"), version}) {
    Stream stream = Watch(From(start) + kInitial);
    std::vector<std::string> both = {stream.Next().Summary(), stream.Next().Summary()};
    EXPECT_THAT(both, ::testing::UnorderedElementsAre("ADDED a", "ADDED b"));
    const Event end = stream.Next();
    EXPECT_TRUE(EndsInitialEvents(end)) << end.type << ToText(end.object);
    EXPECT_EQ(end["kind"], "Widget");
    EXPECT_EQ(end["apiVersion"], "contract.grus.dev/v1");
    EXPECT_EQ(end["spec"], "(none)");
    EXPECT_GE(std::stoull(end["metadata.resourceVersion"]), std::stoull(version));
  }
}

TEST_F(Watching, MarksTheEndOfNoInitialEvents) {
  Stream stream = Watch(Secrets() + "?" + kInitial);

  const Event end = stream.Next();
  EXPECT_TRUE(EndsInitialEvents(end));
  EXPECT_EQ(end["kind"], "Secret");
}

TEST_F(Watching, SelectsInitialEvents) {
  MakeWidget("a", R"({"size":1})", R"({"labels":{"k":"1"}})");
  MakeWidget("b");

  Stream stream = Watch(Widgets() + "?labelSelector=k" + kInitial);

  EXPECT_EQ(stream.Next().Summary(), "ADDED a");
  EXPECT_TRUE(EndsInitialEvents(stream.Next()));
}

TEST_F(Watching, GoesOnAfterInitialEvents) {
  Stream stream = Watch(Widgets() + "?" + kInitial);
  ASSERT_TRUE(EndsInitialEvents(stream.Next()));

  MakeWidget("w");

  EXPECT_EQ(stream.Next().Summary(), "ADDED w");
}

TEST_F(Watching, MarksTheEndForOldClientsToo) {
  const std::string version = MakeWidget("a")["metadata.resourceVersion"];
  Get(From(version));  // Answered once the server's cache is there; version 0 is all that it has by then.

  Stream stream = Watch(Widgets() + "?resourceVersion=0&allowWatchBookmarks=true");

  EXPECT_EQ(stream.Next().Summary(), "ADDED a");
  EXPECT_TRUE(EndsInitialEvents(stream.Next()));
}

TEST_F(Watching, SendsAnErrorForAVersionBeforeItsHistory) {
  // The history of a custom resource begins with its CRD.
  Stream stream = Watch(From("1"));

  EXPECT_EQ(stream.status(), 200);
  const Event error = stream.Next();
  EXPECT_EQ(error.type, "ERROR");
  EXPECT_EQ(error["kind"], "Status");
  EXPECT_EQ(error["reason"], "Expired");
  EXPECT_EQ(error["code"], "410");
  EXPECT_THAT(error["message"], StartsWith("too old resource version: 1 ("));
  EXPECT_EQ(stream.Next().type, Event::kEnd);
}

TEST_F(Watching, WaitsSilentlyForAVersionToCome) {
  Stream stream = Short(From("999999999999"));

  MakeWidget("w");

  EXPECT_EQ(stream.Next().type, Event::kEnd);
}

TEST_F(Watching, SendsAnErrorForInitialEventsOfAVersionToCome) {
  Stream stream = Watch(From("999999999999") + kInitial);

  const Event error = stream.Next();
  EXPECT_EQ(error.type, "ERROR");
  EXPECT_EQ(error["code"], "504");
  EXPECT_EQ(error["reason"], "Timeout");
  EXPECT_EQ(error["details.causes.0.reason"], "ResourceVersionTooLarge");
  EXPECT_EQ(error["details.retryAfterSeconds"], "1");
}

TEST_F(Watching, RefusesResourcesThatAreNotThere) {
  EXPECT_EQ(Watch("/apis/contract.grus.dev/v1/gadgets?resourceVersion=0").status(), 404);
}

}  // namespace
}  // namespace kube::contract
