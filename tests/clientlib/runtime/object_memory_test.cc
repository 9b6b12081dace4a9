// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/object_memory.h"

#include <gtest/gtest.h>

#include <map>

namespace kube {
namespace {

const ObjectKey kKey{"team-a", "bert"};

ObjectMeta Object(const std::string& uid, std::int64_t generation = 1) {
  ObjectMeta object;
  object.ns = kKey.ns;
  object.name = kKey.name;
  object.uid = uid;
  object.generation = generation;
  return object;
}

TEST(ObjectMemory, KeepsWhatWasChanged) {
  ObjectMemory<int> memory;
  EXPECT_EQ(memory.With(Object("u-1"), [](int& kept) { return kept += 2; }), 2);
  EXPECT_EQ(memory.Get(Object("u-1", 7)), 2) << "of any generation";
}

TEST(ObjectMemory, AnotherObjectOfTheNameBeginsAnew) {
  ObjectMemory<int> memory;
  memory.With(Object("u-1"), [](int& kept) { kept = 2; });
  EXPECT_EQ(memory.Get(Object("u-2")), 0);
  EXPECT_EQ(memory.Get(Object("u-1")), 2) << "a look changes nothing";
  memory.With(kKey, "u-2", [](int& kept) { EXPECT_EQ(kept, 0); });
  EXPECT_EQ(memory.Get(Object("u-1")), 0);
}

TEST(ObjectMemory, WhatIsKeptForASpecEndsWithIt) {
  ObjectMemory<int> memory(KeptFor::kSpec);
  memory.With(Object("u-1", 1), [](int& kept) { kept = 2; });
  EXPECT_EQ(memory.Get(Object("u-1", 1)), 2);
  EXPECT_EQ(memory.Get(Object("u-1", 2)), 0);
}

TEST(ObjectMemory, ShowsWhatIsKeptOfEachObject) {
  ObjectMemory<int> memory;
  memory.With(Object("u-1"), [](int& kept) { kept = 2; });
  memory.With({"team-b", "bert"}, "u-2", [](int& kept) { kept = 3; });
  std::map<std::string, int> seen;
  memory.ForEach([&](const ObjectKey& key, int kept) { seen[key.ToString()] = kept; });
  EXPECT_EQ(seen, (std::map<std::string, int>{{"team-a/bert", 2}, {"team-b/bert", 3}}));
}

TEST(ObjectMemory, GivesWhatItForgets) {
  ObjectMemory<int> memory;
  EXPECT_EQ(memory.Forget(kKey), std::nullopt);
  memory.With(Object("u-1"), [](int& kept) { kept = 2; });
  int seen = 0;
  memory.IfKept(kKey, [&](int kept) { seen = kept; });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(memory.Forget(kKey), 2);
  memory.IfKept(kKey, [](int) { FAIL() << "nothing is kept"; });
}

}  // namespace
}  // namespace kube
