// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/object_list.h"

#include <gtest/gtest.h>

#include <string>

#include "clientlib/model/core_v1.h"

namespace kube {
namespace {

const Kind& Maps() { return ConfigMap::ResourceKind(); }

TEST(DecodeObjectsOneByOne, L15AnObjectThatCannotBeReadCostsNoOtherOne) {
  const std::string deep = R"({"data":)" + std::string(20'000, '[') + std::string(20'000, ']') +
                           R"(,"metadata":{"name":"deep","namespace":"ns","uid":"u","resourceVersion":"8"}})";
  const std::string text = R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"c"},"items":[)"
                           R"({"metadata":{"name":"a","namespace":"ns"}}, )" +
                           deep +
                           R"(,{"metadata":{"name":"typed"},"data":7},{"metadata":{"name":"b","namespace":"ns"}}]})";

  const Result<ObjectsOneByOne> read = DecodeObjectsOneByOne(Maps(), text);

  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->list.resource_version, "9");
  EXPECT_EQ(read->list.continue_token, "c");
  ASSERT_EQ(read->list.items.size(), 2u);
  EXPECT_EQ(read->list.items[1]->metadata.name, "b");
  ASSERT_EQ(read->unreadable.size(), 2u);
  const ObjectMeta& found = read->unreadable[0].identity->metadata;
  EXPECT_EQ(found.Key(), (ObjectKey{"ns", "deep"}));
  EXPECT_EQ(found.uid, "u");
  EXPECT_EQ(found.resource_version, "8");
  EXPECT_NE(read->unreadable[0].error.message().find("nested deeper than 10000"), std::string::npos);
  EXPECT_EQ(read->unreadable[1].error.message(), "data: expected an object, found an integer");
}

// What is missing would be unknown, and might be taken for deleted.
TEST(DecodeObjectsOneByOne, L15RefusesWhatIsNoListOfNamedObjects) {
  for (const char* text : {
           "",
           "[]",
           R"({"metadata":{}})",
           R"({"kind":"Status","metadata":{}})",
           R"({"metadata":7,"items":[]})",
           R"({"metadata":{},"items":{}})",
           R"({"metadata":{},"items":[],"items":[]})",
           R"({"metadata":{},"metadata":{},"items":[]})",
           R"({"metadata":{},"items":[{"metadata":{"name":"a"}},7]})",
           R"({"metadata":{},"items":[{"metadata":{"name":7}}]})",
           R"({"metadata":{},"items":[{"kind":"Pod","metadata":{"name":"a"}}]})",
           R"({"metadata":{},"items":[{"metadata":{"name":"a"}})",
           R"({"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"na)",
           R"({"metadata":{},"items":[]} x)",
           R"({"metadata":{},"items":[],"x":nonsense})",
       }) {
    EXPECT_FALSE(DecodeObjectsOneByOne(Maps(), text)) << text;
  }
  EXPECT_TRUE(DecodeObjectsOneByOne(Maps(), R"({"items":null,"metadata":{}})"));
  EXPECT_TRUE(DecodeObjectsOneByOne(Maps(), R"({"items":[],"metadata":{}})"));
}

}  // namespace
}  // namespace kube
