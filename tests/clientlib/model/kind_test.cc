// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/kind.h"

#include <gtest/gtest.h>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/core_v1.h"
#include "tests/clientlib/model/pod_fixture.h"

namespace kube {
namespace {

TEST(Kind, ApiVersionOfTheCoreGroupIsTheVersion) {
  EXPECT_EQ(Pod::ResourceKind().ApiVersion(), "v1");
  EXPECT_EQ(StatefulSet::ResourceKind().ApiVersion(), "apps/v1");
  EXPECT_FALSE(Node::ResourceKind().is_namespaced);
}

TEST(DecodeObject, ErrorsNameTheField) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"metadata":{"generation":"1"}})", "metadata.generation: expected an integer, found a string"},
      {R"({"metadata":{"labels":{"a":1}}})", "metadata.labels[a]: expected a string, found an integer"},
      {R"({"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"x"}}}]}})",
       "spec.containers[0].resources.limits[cpu]: \"x\" is not a quantity"},
      {R"({"kind":"Node"})", "kind: expected Pod, found Node"},
      {R"({"kind":"Status","status":"Failure"})", "kind: expected Pod, found Status"},
      {"[]", "expected an object, found a list"},
  };
  for (const auto& [text, message] : kCases) {
    const Result<std::shared_ptr<Object>> object = DecodeObject(Pod::ResourceKind(), text);
    ASSERT_FALSE(object) << text;
    EXPECT_EQ(object.error().message(), message) << text;
  }
}

TEST(DecodeObject, OddTextsAreErrorsAndNothingWorse) {
  std::string deep = R"({"spec":)";
  for (int i = 0; i < 10000; ++i) deep += R"({"spec":)";
  EXPECT_FALSE(DecodeObject(Pod::ResourceKind(), deep));
  EXPECT_FALSE(DecodeObject(Pod::ResourceKind(), ""));
  const std::string whole = PodText(1);
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) {
    EXPECT_FALSE(DecodeObject(Pod::ResourceKind(), std::string_view(whole).substr(0, cut))) << cut;
  }
}

TEST(DecodeObject, TakesMetadataOnlyForAnyKind) {
  const Result<std::shared_ptr<Pod>> pod = Decode<Pod>(
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"p","namespace":"n"}})");
  ASSERT_TRUE(pod);
  EXPECT_EQ((*pod)->metadata.Key(), (ObjectKey{"n", "p"}));
}

TEST(DecodeObject, BookmarksHaveOnlyAVersion) {
  const Result<std::shared_ptr<Pod>> pod =
      Decode<Pod>(R"({"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","creationTimestamp":null,)"
                  R"("annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}})");
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_EQ((*pod)->metadata.resource_version, "7");
  EXPECT_EQ((*pod)->metadata.Annotation("k8s.io/initial-events-end"), "true");
}

TEST(DecodeObject, I6ManagedFieldsAreOnlyDroppedFromMetadata) {
  const Result<std::shared_ptr<StatefulSet>> set = Decode<StatefulSet>(
      R"({"metadata":{"name":"a","managedFields":[{"x":{"metadata":[1]}}],"annotations":{"b":"c"},"generation":4},)"
      R"("spec":{"managedFields":[1],"template":{"spec":{"annotations":{"kubectl.kubernetes.io/x":"1"}}}}})");
  ASSERT_TRUE(set) << set.error().message();
  EXPECT_EQ((*set)->metadata.generation, 4);
  EXPECT_EQ((*set)->metadata.Annotation("b"), "c");
  EXPECT_EQ(ToText((*set)->spec_json),
            R"({"managedFields":[1],"template":{"spec":{"annotations":{"kubectl.kubernetes.io/x":"1"}}}})");
  ASSERT_NE((*set)->pod_template(), nullptr);
}

// An object whose unknown field nests so deep that the whole has `depth` levels.
std::string NestedPod(const std::string& name, int depth) {
  std::string text = R"({"metadata":{"name":")" + name + R"("},"x":)";
  text.append(static_cast<std::size_t>(depth - 1), '[').append(static_cast<std::size_t>(depth - 1), ']');
  return text + "}";
}

TEST(DecodeObject, L15ReadsWhateverDepthTheServerTakes) {
  EXPECT_TRUE(DecodeObject(Pod::ResourceKind(), NestedPod("a", 101)));
  EXPECT_TRUE(DecodeObject(Pod::ResourceKind(), NestedPod("a", 10'000)));
  EXPECT_FALSE(DecodeObject(Pod::ResourceKind(), NestedPod("a", 10'001)));
  const std::string list = R"({"metadata":{},"items":[)" + NestedPod("a", 10'000) + "," + PodText(2) + "]}";
  const Result<DecodedList> read = DecodeObjectList(Pod::ResourceKind(), list);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->items.size(), 2u);
}

TEST(DecodeObject, OwnsWhatItRead) {
  std::shared_ptr<Pod> first;
  {
    const std::string text = PodText(1);
    Result<std::shared_ptr<Pod>> pod = Decode<Pod>(text);
    ASSERT_TRUE(pod);
    first = *pod;
  }
  ASSERT_TRUE(Decode<Pod>(PodText(2)));  // Uses the same buffers.
  EXPECT_EQ(first->metadata.name, "bert-large-workers-10001");
  EXPECT_EQ(first->spec.hostname, "bert-large-workers-10001");
}

TEST(DecodeObjectList, ReadsItemsAndWhereTheListGoesOn) {
  const std::string text = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"99","continue":"c",)"
                           R"("remainingItemCount":3},"items":[)" +
                           PodText(1) + "," + PodText(2) + R"(,{"metadata":{"name":"x"}}]})";
  const Result<DecodedList> list = DecodeObjectList(Pod::ResourceKind(), text);
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->resource_version, "99");
  EXPECT_EQ(list->continue_token, "c");
  EXPECT_EQ(list->remaining_item_count, 3);
  ASSERT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->items[1]->metadata.name, "bert-large-workers-10002");
  EXPECT_EQ(list->items[1]->metadata.annotations.size(), 1u);
}

TEST(DecodeObjectList, RefusesWhatIsNoList) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"kind":"Status","metadata":{}})", "a list without items"},
      {R"({"items":{}})", "items: expected a list"},
      {R"({"items":[],"items":[{}]})", "items: given twice"},
      {R"({"items":[{},{"spec":{"nodeName":[]}}]})", "items[1].spec.nodeName: expected a string, found a list"},
      {R"([])", "expected an object, found a list"},
  };
  for (const auto& [text, message] : kCases) {
    const Result<DecodedList> list = DecodeObjectList(Pod::ResourceKind(), text);
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().message(), message) << text;
  }
  EXPECT_TRUE(DecodeObjectList(Pod::ResourceKind(), R"({"metadata":{},"items":null})"));
}

TEST(EncodeObject, WritesVersionAndKindFirst) {
  ConfigMap map;
  map.metadata.name = "a";
  map.data["k"] = "v";
  EXPECT_EQ(EncodeObject(ConfigMap::ResourceKind(), map),
            R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}})");
  EXPECT_EQ(ToText(map.data_json()), R"({"k":"v"})");
}

}  // namespace
}  // namespace kube
