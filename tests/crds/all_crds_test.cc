// SPDX-License-Identifier: Apache-2.0
#include "crds/types/all_crds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/types/elastic_horovod_job.h"
#include "crds/types/gpu_queue.h"
#include "crds/types/node_pool.h"
#include "crds/types/pod_group.h"
#include "crds/types/trial_job.h"
#include "crds/types/workload_profile.h"
#include "tests/crds/schema_walk.h"

namespace api {
namespace {

using kube::Json;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

TEST(AllCrds, HaveTheNamesAndColumnsThatPeopleKnow) {
  struct Case {
    const kube::Kind& kind;
    std::string name, scope;
    Json short_names, categories;
    std::vector<std::string> shown, wide;
  };
  const std::vector<std::string> of_groups = {"Phase",     "Min",    "Scheduled", "Running",
                                              "Succeeded", "Failed", "Reason",    "Age"};
  const Json ours = Json::MakeArray({"grus", "all"});
  const Case cases[] = {{kube::KindOf<ElasticHorovodJob>(),
                         "elastichorovodjobs.ai.centauruscloud.io",
                         "Namespaced",
                         Json::MakeArray({"ehj"}),
                         ours,
                         {"Phase", "Min", "Ready", "Max", "Reason", "Progress", "ETA", "Age"},
                         {"Wanted", "Granted", "Message"}},
                        {kube::KindOf<TrialJob>(),
                         "trialjobs.ai.centauruscloud.io",
                         "Namespaced",
                         Json::MakeArray({"tj"}),
                         ours,
                         {"Phase", "Progress", "ETA", "Knee", "Speed-up", "Error", "Spent", "Age"},
                         {"Reason", "Recommendation", "Fingerprint", "Latest", "Message"}},
                        {kube::KindOf<WorkloadProfile>(),
                         "workloadprofiles.ai.centauruscloud.io",
                         "Cluster",
                         Json::MakeArray({"wp"}),
                         Json::MakeArray({"grus"}),
                         {"GPU", "Points", "Knee", "Age"},
                         {"Image"}},
                        {kube::KindOf<GpuQueue>(),
                         "gpuqueues.ai.centauruscloud.io",
                         "Cluster",
                         Json::MakeArray({"gq"}),
                         Json::MakeArray({"grus"}),
                         {"Parent", "Guaranteed", "Used", "Borrowed", "Waiting", "Ready", "Age"},
                         {"Lent", "Running-Jobs", "Waiting-Jobs", "Reason", "Message"}},
                        {kube::KindOf<NodePool>(),
                         "nodepools.ai.centauruscloud.io",
                         "Cluster",
                         Json::MakeArray({"npool"}),
                         Json::MakeArray({"grus"}),
                         {"Nodes", "GPUs", "Free", "Ready", "Age"},
                         {"Used", "Resource", "Placement", "Reason", "Message"}},
                        {kube::KindOf<PodGroup>(),
                         "podgroups.scheduling.x-k8s.io",
                         "Namespaced",
                         Json::MakeArray({"pg", "pgs"}),
                         ours,
                         of_groups,
                         {"Message"}},
                        // It leaves the short names to the other.
                        {kube::KindOf<LegacyPodGroup>(),
                         "podgroups.scheduling.sigs.k8s.io",
                         "Namespaced",
                         Json(),
                         ours,
                         of_groups,
                         {"Message"}}};
  ASSERT_EQ(std::size(cases), AllCrds().size());
  for (const Case& c : cases) {
    const Json crd = CrdOf(c.kind);
    EXPECT_EQ(At(crd, {"metadata", "name"}), Json(c.name));
    EXPECT_EQ(At(crd, {"spec", "scope"}), Json(c.scope)) << c.name;
    EXPECT_EQ(At(crd, {"spec", "names", "kind"}), Json(c.kind.kind)) << c.name;
    EXPECT_EQ(At(crd, {"spec", "names", "shortNames"}), c.short_names) << c.name;
    EXPECT_EQ(At(crd, {"spec", "names", "categories"}), c.categories) << c.name;
    EXPECT_EQ(At(VersionOf(c.kind), {"name"}), Json("v1alpha1")) << c.name;
    EXPECT_TRUE(At(VersionOf(c.kind), {"subresources", "status"}).is_object()) << c.name;
    EXPECT_THAT(ColumnsOf(c.kind).shown, ElementsAreArray(c.shown)) << c.name;
    EXPECT_THAT(ColumnsOf(c.kind).wide, ElementsAreArray(c.wide)) << c.name;
    EXPECT_THAT(FieldsThat(c.kind, LacksDescription), IsEmpty()) << c.name;
  }
}

// A value for each field of a schema, also below lists and maps.
Json Filled(const Json& schema) {
  if (const Json* values = schema.Find("enum")) return values->AsArray()->back();
  if (schema.Find("x-kubernetes-int-or-string")) return "2";
  if (schema.Find("x-kubernetes-preserve-unknown-fields")) return Json::MakeObject({{"any", "thing"}});
  const Json type = At(schema, {"type"});
  if (type == Json("array")) return Json::MakeArray({Filled(*schema.Find("items"))});
  if (type == Json("integer")) return 3;
  if (type == Json("boolean")) return true;
  if (type != Json("object")) return At(schema, {"format"}) == Json("date-time") ? "2026-01-02T03:04:05Z" : "some";
  Json object = Json::MakeObject();
  if (const Json* values = schema.Find("additionalProperties")) object["key"] = Filled(*values);
  if (const Json* properties = schema.Find("properties")) {
    for (const auto& [name, field] : *properties->AsObject()) object[name] = Filled(field);
  }
  return object;
}

TEST(AllCrds, EveryFieldSurvivesReadingAndWriting) {
  for (const kube::CrdInfo& info : AllCrds()) {
    Json before = Json::MakeObject({{"apiVersion", info.kind->ApiVersion()}, {"kind", info.kind->kind}});
    before["metadata"]["name"] = "some";
    for (const char* part : {"spec", "status"}) before[part] = Filled(SchemaOf(*info.kind, {part}));
    const auto object = kube::DecodeObject(*info.kind, ToText(before));
    ASSERT_TRUE(object) << object.error().message();
    EXPECT_EQ(*kube::ParseJson(kube::EncodeObject(*info.kind, **object)), before);
  }
}

TEST(AllCrds, NoNumberIsAFloat) {
  for (const kube::CrdInfo& info : AllCrds())
    EXPECT_THAT(FieldsThat(*info.kind, IsFloat), IsEmpty()) << info.kind->kind;
}

}  // namespace
}  // namespace api
