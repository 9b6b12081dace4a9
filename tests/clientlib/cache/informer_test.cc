// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/informer.h"

#include <atomic>
#include <future>
#include <set>

#include "tests/clientlib/cache/reflector_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Remembers what a handler is told: "+a" for a new object, "~a" a changed, "=a" a recreated, "-a" a deleted
// one, with
// "(initial)" where it is.
class Told {
 public:
  Informer::Handler Handler() {
    return [this](const Change& c, bool is_initial) {
      const bool is_recreated = c.before && c.after && c.before->metadata.uid != c.after->metadata.uid;
      std::string line = (!c.before ? "+" : !c.after ? "-" : is_recreated ? "=" : "~") + c.Any().metadata.name;
      {
        std::lock_guard lock(mutex_);
        lines_.push_back(line + (is_initial ? "(initial)" : ""));
      }
      changed_.notify_all();
    };
  }
  // All so far, once there are `count`; fewer if they do not come within 20 s of real time.
  std::vector<std::string> Await(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;  // Guards lines_.
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

class InformerTest : public ::testing::Test {
 protected:
  Informer& Make(InformerOptions options = {}) {
    informer_ = std::make_unique<Informer>(client_, KindOf<ConfigMap>(), std::move(options), clock_, log_);
    return *informer_;
  }
  FakeStream ExpectWatch(const std::string& collection = "/api/v1/configmaps") {
    return transport_.ExpectStream(collection + "?watch=1");
  }
  // True once all that was pushed is in the store.
  bool WaitForSync() { return informer_->WaitForSync(clock_.Now() + 1h); }

  FakeClock clock_;
  FakeTransport transport_{clock_};
  Client client_{transport_, nullptr, clock_};
  Log log_{LogLevel::kOff};
  Told told_;  // Outlives the informer, whose thread tells it.
  std::unique_ptr<Informer> informer_;
};

TEST_F(InformerTest, I5IsSyncedOnceTheFirstListIsStoredAndTold) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(Added("a", "5") + Added("b", "6"));
  ASSERT_TRUE(stream.AwaitDrained());
  EXPECT_FALSE(informer.HasSynced());

  stream.Push(InitialEnd("7"));

  ASSERT_TRUE(WaitForSync());
  EXPECT_TRUE(informer.HasSynced());
  EXPECT_THAT(told_.Await(0), ElementsAre("+a(initial)", "+b(initial)"));
  EXPECT_EQ(informer.store().size(), 2u);
  EXPECT_EQ(informer.store().resource_version(), "7");
}

TEST_F(InformerTest, I5WaitForSyncEndsAtItsTimeOrWithAStop) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.Start();
  ASSERT_TRUE(stream.AwaitDrained());

  auto in_time = std::async(std::launch::async, [&] { return informer.WaitForSync(FakeClock::kStart + 10s); });
  std::stop_source stop;
  auto stopped =
      std::async(std::launch::async, [&] { return informer.WaitForSync(FakeClock::kStart + 1h, stop.get_token()); });
  ASSERT_TRUE(clock_.AwaitWaiters(3));  // The reflector too.
  clock_.Advance(10s);
  EXPECT_FALSE(in_time.get());
  stop.request_stop();
  EXPECT_FALSE(stopped.get());
}

TEST_F(InformerTest, I4HandlersAreToldInOrderAfterTheStoreChanged) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  const Store::IndexId by_name = informer.AddIndex([](const Object& o) { return std::vector{o.metadata.name}; });
  std::atomic<int> stale = 0;
  informer.AddHandler([&](const Change& change, bool) {
    const std::string name = change.Any().metadata.name;
    const bool is_there = informer.Get<ConfigMap>({"ns", name}) != nullptr;
    const bool is_indexed = !informer.ByIndex<ConfigMap>(by_name, name).empty();
    if (is_there != (change.after != nullptr) || is_indexed != is_there) ++stale;
  });
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(InitialEnd("7") + Added("a", "8") + Modified("a", "9") + Deleted("a", "10") + Added("b", "11"));

  EXPECT_THAT(told_.Await(4), ElementsAre("+a", "~a", "-a", "+b"));
  EXPECT_EQ(stale, 0);
}

TEST_F(InformerTest, I3ADeletionAndRecreationBetweenTwoLooksHasTwoUids) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(Added("a", "5") + InitialEnd("7") + EventLine("MODIFIED", MapText("a", "8", "u-other")));
  EXPECT_THAT(told_.Await(2), ElementsAre("+a(initial)", "=a"));
}

TEST_F(InformerTest, I2ARelistTellsOfWhatIsGone) {
  FakeStream stream = ExpectWatch(), second = ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(Added("a", "5") + Added("b", "6") + InitialEnd("7") + ErrorLine(410, "Expired"));
  second.Push(Added("b", "6") + Added("c", "18") + InitialEnd("20"));

  // A later list is not initial: its changes are news. An object that did not change is not told of.
  EXPECT_THAT(told_.Await(4), ElementsAre("+a(initial)", "+b(initial)", "-a", "+c"));
  EXPECT_EQ(informer.store().resource_version(), "20");
}

TEST_F(InformerTest, ADeletionOfWhatWasNeverThereIsNotTold) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(InitialEnd("7") + Deleted("a", "8") + Added("b", "9"));
  EXPECT_THAT(told_.Await(1), ElementsAre("+b"));
}

TEST_F(InformerTest, I4ALateHandlerIsToldOfAllThatIsThere) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.Start();
  stream.Push(Added("a", "5") + Added("b", "6") + InitialEnd("7"));
  ASSERT_TRUE(WaitForSync());

  informer.AddHandler(told_.Handler());
  EXPECT_THAT(told_.Await(0), UnorderedElementsAre("+a(initial)", "+b(initial)"));

  stream.Push(Modified("a", "8"));
  EXPECT_EQ(told_.Await(3).back(), "~a");
}

TEST_F(InformerTest, I4ALateHandlerSeesNoGapAndNoRepetition) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.Start();
  stream.Push(InitialEnd("1"));
  ASSERT_TRUE(WaitForSync());
  constexpr int kObjects = 500;
  auto pushed = std::async(std::launch::async, [&] {
    for (int i = 0; i < kObjects; ++i) stream.Push(Added("x" + std::to_string(i), std::to_string(i + 2)));
  });

  informer.AddHandler(told_.Handler());

  std::multiset<std::string> names;
  for (const std::string& line : told_.Await(kObjects)) names.insert(line.substr(1, line.find('(') - 1));
  EXPECT_THAT(names, SizeIs(kObjects));
  EXPECT_THAT((std::set<std::string>(names.begin(), names.end())), SizeIs(kObjects));
}

TEST_F(InformerTest, W2ABookmarkAdvancesTheStore) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.Start();
  stream.Push(InitialEnd("7") + Bookmark("30"));
  ASSERT_TRUE(WaitForSync());
  ASSERT_TRUE(stream.AwaitDrained());
  EXPECT_EQ(informer.store().resource_version("ns"), "30");
}

TEST_F(InformerTest, EachNamespaceHasItsOwnWatchAndAllMustBeSynced) {
  FakeStream a = ExpectWatch("/api/v1/namespaces/a/configmaps"), b = ExpectWatch("/api/v1/namespaces/b/configmaps");
  Informer& informer = Make({.namespaces = {"a", "b"}});
  informer.Start();
  a.Push(EventLine("ADDED",
                   R"({"kind":"ConfigMap","metadata":{"name":"x","namespace":"a","uid":"1","resourceVersion":"5"}})"));
  a.Push(InitialEnd("7"));
  ASSERT_TRUE(a.AwaitDrained());
  EXPECT_FALSE(informer.HasSynced());

  b.Push(InitialEnd("9"));

  ASSERT_TRUE(WaitForSync());
  EXPECT_NE(informer.Get<ConfigMap>({"a", "x"}), nullptr);  // The second list did not sweep the first.
  EXPECT_EQ(informer.store().resource_version("a"), "7");
  EXPECT_EQ(informer.store().resource_version("b"), "9");
  EXPECT_EQ(informer.stats().watches, 2u);
}

TEST_F(InformerTest, AnOptionalKindThatMayNotBeReadCountsAsSyncedWithoutAList) {
  transport_.Expect("GET", "/api/v1/configmaps?watch=1", StatusAnswer(403, "Forbidden", "configmaps is forbidden"));
  Informer& informer = Make({.is_optional = true});
  informer.Start();
  ASSERT_TRUE(WaitForSync());
  EXPECT_FALSE(informer.HasList());
}

TEST_F(InformerTest, AnOptionalKindThatIsNotServedCountsAsSyncedWithoutAList) {
  transport_.Expect("GET", "/api/v1/configmaps?watch=1", StatusAnswer(404, "NotFound", "there is no such resource"));
  Informer& informer = Make({.is_optional = true});
  informer.Start();
  ASSERT_TRUE(WaitForSync());
  EXPECT_FALSE(informer.HasList());
}

TEST_F(InformerTest, AnOptionalKindIsThereOnceItsPermissionIs) {
  transport_.Expect("GET", "/api/v1/configmaps?watch=1", StatusAnswer(403, "Forbidden", "configmaps is forbidden"));
  Informer& informer = Make({.is_optional = true});
  informer.AddHandler(told_.Handler());
  informer.Start();
  ASSERT_TRUE(WaitForSync());
  FakeStream stream = ExpectWatch();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(2s);
  stream.Push(Added("a", "5") + InitialEnd("7") + Added("b", "8"));
  EXPECT_THAT(told_.Await(2), ElementsAre("+a(initial)", "+b"));
  EXPECT_TRUE(informer.HasList());
}

TEST_F(InformerTest, AnyOtherErrorOfAnOptionalKindIsWaitedFor) {
  transport_.Expect("GET", "/api/v1/configmaps?watch=1", StatusAnswer(503, "ServiceUnavailable", "starting"));
  Informer& informer = Make({.is_optional = true});
  informer.Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_FALSE(informer.HasSynced());
}

TEST_F(InformerTest, AClusterScopedKindIsWatchedWhole) {
  FakeStream stream = ExpectWatch("/api/v1/nodes");
  Informer informer(client_, KindOf<Node>(), {.namespaces = {"a", "b"}}, clock_, log_);
  informer.Start();
  stream.Push(InitialEnd("7"));
  EXPECT_TRUE(informer.WaitForSync(clock_.Now() + 1h));
  EXPECT_THAT(transport_.requests(), SizeIs(1));
}

TEST_F(InformerTest, TypedReadsShareTheObject) {
  FakeStream stream = ExpectWatch();
  Informer& informer = Make();
  informer.Start();
  stream.Push(Added("a", "5") + InitialEnd("7"));
  ASSERT_TRUE(WaitForSync());
  ASSERT_THAT(informer.List<ConfigMap>(), SizeIs(1));
  EXPECT_EQ(informer.List<ConfigMap>()[0], informer.Get<ConfigMap>({"ns", "a"}));
  EXPECT_EQ(informer.Get<ConfigMap>({"ns", "b"}), nullptr);
}

TEST_F(InformerTest, StatsTellWhyItDoesNotSync) {
  transport_.Expect("GET", "/", StatusAnswer(403, "Forbidden", "configmaps is forbidden"));
  Informer& informer = Make();
  informer.Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(informer.stats().last_error, "watch configmaps: configmaps is forbidden");
  EXPECT_EQ(informer.stats().failures, 1u);
}

TEST_F(InformerTest, ItEndsWithoutHavingStarted) { Make(); }

// Lists the maps again and again, as from a server that does not know watch-list: `answers`, each followed by a watch
// that has expired, and then a watch that stays.
void ExpectLists(FakeTransport& transport, std::vector<HttpResponse> answers) {
  transport.Expect("GET", "/api/v1/configmaps?watch=1", StatusAnswer(422, "Invalid", "no sendInitialEvents"));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i > 0) transport.Expect("GET", "/api/v1/configmaps?watch=1", JsonAnswer(200, ErrorLine(410, "Expired")));
    // One request more for a list with an object that cannot be read.
    const int times = answers[i].body.find("\"data\":7") == std::string::npos ? 1 : 2;
    for (int n = 0; n < times; ++n) transport.Expect("GET", "/api/v1/configmaps?resourceVersion", answers[i]);
  }
}

TEST_F(InformerTest, L15AListKeepsTheLastStateOfWhatCannotBeRead) {
  ExpectLists(transport_, {ListAnswer("7", {MapText("a", "5"), MapText("b", "6"), Unreadable("new", "6")}),
                           ListAnswer("20", {Unreadable("a", "15"), MapText("c", "18")})});
  ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();

  EXPECT_THAT(told_.Await(4), ElementsAre("+a(initial)", "+b(initial)", "-b", "+c"));
  ASSERT_TRUE(informer.Get<ConfigMap>({"ns", "a"}));
  EXPECT_EQ(informer.Get<ConfigMap>({"ns", "a"})->metadata.resource_version, "5");
  EXPECT_FALSE(informer.Get<ConfigMap>({"ns", "new"})) << "nobody knows its state";
  EXPECT_EQ(informer.store().resource_version(), "20");
  EXPECT_EQ(informer.stats().bad_events, 2u);
}

TEST_F(InformerTest, L15TheInitialObjectsOfAWatchKeepItToo) {
  FakeStream stream = ExpectWatch(), second = ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(Added("a", "5") + Added("b", "6") + InitialEnd("7") + ErrorLine(410, "Expired"));
  second.Push(EventLine("ADDED", Unreadable("a", "15")) + EventLine("ADDED", Unreadable("b", "16")) +
              EventLine("DELETED", Unreadable("b", "17")) + Added("c", "18") +
              EventLine("MODIFIED", Unreadable("c", "19")) + InitialEnd("20"));

  EXPECT_THAT(told_.Await(4), ElementsAre("+a(initial)", "+b(initial)", "-b", "+c"));
  EXPECT_EQ(informer.Get<ConfigMap>({"ns", "a"})->metadata.resource_version, "5");
  EXPECT_EQ(informer.Get<ConfigMap>({"ns", "c"})->metadata.resource_version, "18");
}

TEST_F(InformerTest, L15AnotherUidSaysThatTheKnownObjectIsGone) {
  FakeStream stream = ExpectWatch(), second = ExpectWatch();
  Informer& informer = Make();
  informer.AddHandler(told_.Handler());
  informer.Start();
  stream.Push(Added("a", "5") + InitialEnd("7") + ErrorLine(410, "Expired"));
  second.Push(EventLine("ADDED", Unreadable("a", "15", "another")) + InitialEnd("20"));

  EXPECT_THAT(told_.Await(2), ElementsAre("+a(initial)", "-a"));
}

}  // namespace
}  // namespace kube::testing
