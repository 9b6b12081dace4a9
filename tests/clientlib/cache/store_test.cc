// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "clientlib/model/core_v1.h"

namespace kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::shared_ptr<ConfigMap> Map(std::string ns, std::string name, std::string version, std::string uid = "u",
                               std::string color = {}) {
  auto map = std::make_shared<ConfigMap>();
  map->metadata.ns = std::move(ns);
  map->metadata.name = std::move(name);
  map->metadata.resource_version = std::move(version);
  map->metadata.uid = std::move(uid);
  if (!color.empty()) map->data["color"] = std::move(color);
  return map;
}

std::vector<std::string> Colors(const Object& object) {
  const auto& data = static_cast<const ConfigMap&>(object).data;
  const auto it = data.find("color");
  return it == data.end() ? std::vector<std::string>{} : std::vector<std::string>{it->second};
}

std::vector<std::string> Names(const std::vector<ConstObject>& objects) {
  std::vector<std::string> names;
  for (const ConstObject& object : objects) names.push_back(object->metadata.Key().ToString());
  return names;
}

// "+a" added, "~a" changed, "=a" recreated, "-a" removed.
std::vector<std::string> Told(const std::vector<Change>& changes) {
  std::vector<std::string> told;
  for (const Change& c : changes) {
    const bool is_recreated = c.before && c.after && c.before->metadata.uid != c.after->metadata.uid;
    told.push_back((!c.before ? "+" : !c.after ? "-" : is_recreated ? "=" : "~") + c.Any().metadata.Key().ToString());
  }
  return told;
}

TEST(Store, FindsByNamespaceAndName) {
  Store store;
  store.Put(Map("a", "x", "1"));
  store.Put(Map("b", "x", "2"));
  EXPECT_EQ(store.Get({"a", "x"})->metadata.resource_version, "1");
  EXPECT_EQ(store.Get({"b", "x"})->metadata.resource_version, "2");
  EXPECT_EQ(store.Get({"", "x"}), nullptr);
  EXPECT_EQ(store.size(), 2u);
  EXPECT_THAT(Names(store.List()), UnorderedElementsAre("a/x", "b/x"));
}

TEST(Store, AChangeHoldsBothStates) {
  Store store;
  const Change added = store.Put(Map("a", "x", "1"));
  EXPECT_EQ(added.before, nullptr);
  EXPECT_EQ(added.after->metadata.resource_version, "1");

  const Change changed = store.Put(Map("a", "x", "2"));
  EXPECT_EQ(changed.before->metadata.resource_version, "1");
  EXPECT_EQ(changed.after->metadata.resource_version, "2");

  const Change removed = store.Remove(*Map("a", "x", "3"));
  EXPECT_EQ(removed.before->metadata.resource_version, "2");
  EXPECT_EQ(removed.after, nullptr);
  EXPECT_EQ(store.size(), 0u);
}

TEST(Store, RemovingWhatIsNotThereIsNoChange) {
  Store store;
  const Change change = store.Remove(*Map("a", "x", "3"));
  EXPECT_EQ(change.before, nullptr);
  EXPECT_EQ(change.after, nullptr);
}

TEST(Store, I7ACallersObjectOutlivesItsRemoval) {
  Store store;
  store.Put(Map("a", "x", "1"));
  const ConstObject held = store.Get({"a", "x"});
  store.Remove(*held);
  EXPECT_EQ(held->metadata.resource_version, "1");
}

TEST(Store, I2ReplaceTellsWhatIsGoneNewAndChanged) {
  Store store;
  store.Put(Map("a", "gone", "1"));
  store.Put(Map("a", "same", "2"));
  store.Put(Map("a", "old", "3"));

  const std::vector<Change> changes =
      store.Replace({Map("a", "same", "2"), Map("a", "old", "7"), Map("a", "new", "8")}, "9");

  EXPECT_THAT(Told(changes), UnorderedElementsAre("-a/gone", "~a/old", "+a/new"));
  EXPECT_THAT(Names(store.List()), UnorderedElementsAre("a/same", "a/old", "a/new"));
  EXPECT_EQ(store.resource_version(), "9");
}

TEST(Store, I2TheTombstoneHoldsTheLastKnownState) {
  Store store;
  store.Put(Map("a", "gone", "1", "u-1", "red"));
  const std::vector<Change> changes = store.Replace({}, "9");
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].after, nullptr);
  EXPECT_THAT(Colors(*changes[0].before), ElementsAre("red"));
}

TEST(Store, I3ARecreationIsOneChangeWithTwoUids) {
  Store store;
  store.Put(Map("a", "x", "1", "u-1"));
  const std::vector<Change> changes = store.Replace({Map("a", "x", "5", "u-2")}, "9");
  EXPECT_THAT(Told(changes), ElementsAre("=a/x"));
  EXPECT_THAT(Told({store.Put(Map("a", "x", "10", "u-3"))}), ElementsAre("=a/x"));
}

TEST(Store, I3ARecreationWithTheSameVersionIsSeen) {
  Store store;
  store.Put(Map("a", "x", "1", "u-1"));
  EXPECT_THAT(Told(store.Replace({Map("a", "x", "1", "u-2")}, "9")), ElementsAre("=a/x"));
}

TEST(Store, I2AReplaceOfOneNamespaceLeavesTheOthers) {
  Store store;
  store.Replace({Map("a", "x", "1")}, "5", "a");
  store.Replace({Map("b", "x", "2")}, "6", "b");
  EXPECT_THAT(Told(store.Replace({}, "8", "a")), ElementsAre("-a/x"));
  EXPECT_THAT(Names(store.List()), ElementsAre("b/x"));
  EXPECT_EQ(store.resource_version("a"), "8");
  EXPECT_EQ(store.resource_version("b"), "6");
}

TEST(Store, IndexesFollowEveryChange) {
  Store store;
  const Store::IndexId by_color = store.AddIndex(Colors);
  const Store::IndexId by_ns = store.AddIndex([](const Object& o) { return std::vector{o.metadata.ns}; });

  store.Put(Map("a", "x", "1", "u", "red"));
  store.Put(Map("a", "y", "2", "u", "red"));
  store.Put(Map("b", "z", "3"));
  EXPECT_THAT(Names(store.ByIndex(by_color, "red")), UnorderedElementsAre("a/x", "a/y"));
  EXPECT_THAT(Names(store.ByIndex(by_ns, "b")), ElementsAre("b/z"));

  store.Put(Map("a", "x", "4", "u", "blue"));
  EXPECT_THAT(Names(store.ByIndex(by_color, "red")), ElementsAre("a/y"));
  EXPECT_THAT(Names(store.ByIndex(by_color, "blue")), ElementsAre("a/x"));
  EXPECT_EQ(store.ByIndex(by_color, "blue")[0]->metadata.resource_version, "4");

  store.Remove(*Map("a", "y", "5"));
  EXPECT_THAT(store.ByIndex(by_color, "red"), IsEmpty());

  store.Replace({Map("c", "w", "6", "u", "red")}, "9");
  EXPECT_THAT(Names(store.ByIndex(by_color, "red")), ElementsAre("c/w"));
  EXPECT_THAT(store.ByIndex(by_color, "blue"), IsEmpty());
  EXPECT_THAT(Names(store.ByIndex(by_ns, "c")), ElementsAre("c/w"));
}

TEST(Store, APlainFunctionThatIsAddedTwiceHasOneIndex) {
  Store store;
  const auto names = [](const Object& o) { return std::vector{o.metadata.name}; };
  const Store::IndexId by_name = store.AddIndex(names), by_color = store.AddIndex(Colors);
  const Store::IndexId again = store.AddIndex(Colors), by_name_again = store.AddIndex(names);
  store.Put(Map("a", "x", "1", "u", "red"));
  EXPECT_EQ(again, by_color);
  EXPECT_NE(by_name_again, by_name) << "what a lambda has captured cannot be compared";
  EXPECT_THAT(Names(store.ByIndex(again, "red")), ElementsAre("a/x"));
  EXPECT_THAT(Names(store.ByIndex(by_name_again, "x")), ElementsAre("a/x"));
}

TEST(Store, AnIndexOfTheSameVersionHoldsTheNewestObject) {
  Store store;
  const Store::IndexId by_color = store.AddIndex(Colors);
  store.Put(Map("a", "x", "1", "u", "red"));
  store.Replace({Map("a", "x", "1", "u", "red")}, "9");  // No change, but other memory.
  EXPECT_EQ(store.ByIndex(by_color, "red")[0], store.Get({"a", "x"}));
}

TEST(Store, AnObjectMayHaveManyIndexValuesOrTheSameTwice) {
  Store store;
  const Store::IndexId index = store.AddIndex([](const Object& o) {
    return std::vector<std::string>{o.metadata.name, o.metadata.name, "all"};
  });
  store.Put(Map("a", "x", "1"));
  EXPECT_THAT(Names(store.ByIndex(index, "x")), ElementsAre("a/x"));
  EXPECT_THAT(Names(store.ByIndex(index, "all")), ElementsAre("a/x"));
  store.Remove(*Map("a", "x", "2"));
  EXPECT_THAT(store.ByIndex(index, "x"), IsEmpty());
}

TEST(Store, W2ItsVersionAdvancesWithEventsAndBookmarksAndNeverGoesBack) {
  Store store;
  EXPECT_EQ(store.resource_version(), "");
  store.Replace({}, "9");
  store.Put(Map("a", "x", "10"));
  EXPECT_EQ(store.resource_version(), "10");
  store.Put(Map("a", "y", "7"));
  EXPECT_EQ(store.resource_version(), "10");
  store.Remove(*Map("a", "x", "12"));
  EXPECT_EQ(store.resource_version(), "12");
  store.Advance("100");
  EXPECT_EQ(store.resource_version(), "100");
  store.Advance("99");
  EXPECT_EQ(store.resource_version(), "100");
  store.Replace({}, "98");
  EXPECT_EQ(store.resource_version(), "100");
}

TEST(Store, AnotherScopesVersionIsNotMixedIn) {
  Store store;
  store.Replace({}, "5", "a");
  store.Advance("8", "b");
  EXPECT_EQ(store.resource_version("a"), "5");
  EXPECT_EQ(store.resource_version("b"), "8");
  EXPECT_EQ(store.resource_version("c"), "");
}

TEST(Store, AWatchOverAllNamespacesAnswersForEach) {
  Store store;
  store.Replace({}, "5");
  EXPECT_EQ(store.resource_version("a"), "5");
}

TEST(IsOlder, W1ComparesAsIntegers) {
  EXPECT_TRUE(IsOlder("9", "10"));
  EXPECT_TRUE(IsOlder("10", "11"));
  EXPECT_FALSE(IsOlder("10", "10"));
  EXPECT_FALSE(IsOlder("11", "10"));
  EXPECT_TRUE(IsOlder("18446744073709551615", "18446744073709551616"));  // No 64-bit limit.
}

TEST(IsOlder, W1WhatIsNoVersionIsNotComparable) {
  for (const std::string_view odd : {"", "0", "01", "-1", "1a", "abc", " 1", "1.5"}) {
    EXPECT_FALSE(IsOlder(odd, "10")) << odd;
    EXPECT_FALSE(IsOlder("10", odd)) << odd;
  }
}

// A reader never sees a Replace() half done: all objects of a list have one color.
TEST(Store, I1AReaderSeesTheStatesOfAnObjectInTheirOrder) {
  Store store;
  store.Put(Map("a", "x", "1"));
  std::atomic<bool> is_done = false;
  std::atomic<int> steps_back = 0;
  std::jthread reader([&] {
    for (int last = 0; !is_done;) {
      const int seen = std::stoi(store.Get({"a", "x"})->metadata.resource_version);
      if (seen < last) ++steps_back;
      last = seen;
    }
  });
  for (int version = 2; version < 3000; ++version) {
    if (version % 7 == 0) store.Replace({Map("a", "x", std::to_string(version))}, std::to_string(version));
    else store.Put(Map("a", "x", std::to_string(version)));
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(steps_back, 0);
  EXPECT_EQ(store.Get({"a", "x"})->metadata.resource_version, "2999");
}

TEST(Store, I2ReplaceIsAtomicToReaders) {
  Store store;
  const Store::IndexId by_color = store.AddIndex(Colors);
  const auto all_in = [](const std::string& color, const std::string& version) {
    std::vector<ConstObject> objects;
    for (int i = 0; i < 20; ++i) objects.push_back(Map("a", "x" + std::to_string(i), version, "u", color));
    return objects;
  };
  store.Replace(all_in("red", "1"), "1");
  std::atomic<bool> is_done = false;
  std::atomic<int> torn = 0;
  std::jthread reader([&] {
    while (!is_done) {
      const std::vector<ConstObject> seen = store.List();
      const bool is_one =
          std::all_of(seen.begin(), seen.end(), [&](const ConstObject& o) { return Colors(*o) == Colors(*seen[0]); });
      if (seen.size() != 20 || !is_one) ++torn;
      const std::size_t red = store.ByIndex(by_color, "red").size();
      if (red != 0 && red != 20) ++torn;
    }
  });
  for (int round = 2; round < 300; ++round) {
    store.Replace(all_in(round % 2 ? "red" : "blue", std::to_string(round)), std::to_string(round));
  }
  is_done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace kube
