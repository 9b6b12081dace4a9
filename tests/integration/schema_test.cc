// SPDX-License-Identifier: Apache-2.0
// What the CRD itself refuses: the user hears it from `kubectl apply`, with the field and the limit.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::AllOf;
using ::testing::HasSubstr;

kube::Result<std::shared_ptr<kube::Object>> Try(kube::Client& client, const kube::Json& manifest) {
  const std::string ns = *manifest.At({"metadata", "namespace"})->AsString();
  return client.Create(KindOf<api::ElasticHorovodJob>(), ns, manifest, {.dry_run = true});
}

TEST_F(ElasticJob, TheCrdRefusesSpecsThatMakeNoSense) {
  struct Case {
    const char *spec, *field, *limit;
  };
  const Case cases[] = {
      {R"({"workersSpec":{"minReplicas":5,"maxReplicas":4}})", "workersSpec.minReplicas",
       "must not be larger than workersSpec.maxReplicas"},
      {R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,"targetReplicas":5}})", "workersSpec.targetReplicas",
       "must not be larger than workersSpec.maxReplicas"},
      {R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,"targetReplicas":1}})", "workersSpec.targetReplicas",
       "must not be smaller than workersSpec.minReplicas"},
      // Of the plain rules, one of each kind: that the schema has them is tested in tests/crds.
      {R"({"workersSpec":{"maxReplicas":10001}})", "spec.workersSpec.maxReplicas", "less than or equal to 10000"},
      {R"({"workersSpec":{"maxReplicas":"two"}})", "spec.workersSpec.maxReplicas", "must be of type integer"},
      {R"({"workersSpec":{"image":""}})", "spec.workersSpec.image", "at least 1 chars"},
      {R"({"launcherSpec":{"pythonCommand":[]}})", "spec.launcherSpec.pythonCommand", "at least 1 items"},
      {R"({"launcherSpec":null})", "spec.launcherSpec", "Required value"},
      {R"({"runPolicy":{"activeDeadlineSeconds":0}})", "spec.runPolicy.activeDeadlineSeconds",
       "greater than or equal to 1"},
      {R"({"workloadClass":"Fun"})", "spec.workloadClass", "\"Unattended\", \"Interactive\", \"Inference\""},
  };
  for (const Case& c : cases) {
    const auto made = Try(client(), Manifest("train", c.spec));
    ASSERT_FALSE(made) << c.spec;
    EXPECT_EQ(made.error().code(), kube::ErrorCode::kInvalid) << c.spec;
    EXPECT_THAT(made.error().message(), AllOf(HasSubstr(c.field), HasSubstr(c.limit))) << c.spec;
  }
}

TEST_F(ElasticJob, TheCrdRefusesNamesThatChildrenCouldNotBear) {
  struct Case {
    std::string name;
    const char* limit;
  };
  const Case cases[] = {{std::string(45, 'a'), "at most 44 characters"},
                        {"bert.large", "letters, digits and '-'"},
                        {"1st", "start with a letter"}};
  for (const Case& c : cases) {
    const auto made = Try(client(), Manifest(c.name, "{}"));
    ASSERT_FALSE(made) << c.name;
    EXPECT_EQ(made.error().code(), kube::ErrorCode::kInvalid) << c.name;
    EXPECT_THAT(made.error().message(), AllOf(HasSubstr("metadata.name: Invalid value"), HasSubstr(c.limit))) << c.name;
  }
}

TEST_F(ElasticJob, TheScaleSubresourceKeepsTheLimits) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));

  EXPECT_THAT([&] { Scale(3); }, ::testing::ThrowsMessage<std::runtime_error>(HasSubstr("targetReplicas")));
  EXPECT_THAT([&] { Scale(0); }, ::testing::ThrowsMessage<std::runtime_error>(HasSubstr("suspend")));
}

TEST_F(ElasticJob, AJobWithTheLongestNameRuns) {
  AddNode(2);
  const std::string name(44, 'a');

  Create(R"({"workersSpec":{"maxReplicas":2}})", name);

  EXPECT_TRUE(AwaitTrains(2, name));
}

}  // namespace
}  // namespace grus::testing
