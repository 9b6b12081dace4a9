// SPDX-License-Identifier: Apache-2.0
// What the CRDs of GpuQueue and NodePool refuse: the user hears it from `kubectl apply`, with the field and the remedy.
#include <gmock/gmock.h>

#include "crds/types/gpu_queue.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Without a manager. The kinds are cluster-scoped: nothing is kept, so that other tests do not see it.
class QueueSchema : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  // Null `spec`: none.
  template <typename T>
  static kube::Result<std::shared_ptr<T>> Try(const char* spec, const std::string& name = "research") {
    kube::Json manifest =
        kube::Json::MakeObject({{"apiVersion", KindOf<T>().ApiVersion()}, {"kind", KindOf<T>().kind}});
    manifest["metadata"]["name"] = name;
    if (spec != nullptr) manifest["spec"] = Must(kube::ParseJson(spec));
    auto made = client().Create(KindOf<T>(), "", manifest, {.dry_run = true});
    if (!made) return std::move(made).error();
    return std::static_pointer_cast<T>(*std::move(made));
  }
};

template <typename T>
void ExpectRefused(const kube::Result<std::shared_ptr<T>>& made, const std::string& spec, const char* field,
                   const char* remedy) {
  ASSERT_FALSE(made) << spec;
  EXPECT_EQ(made.error().code(), kube::ErrorCode::kInvalid) << spec;
  EXPECT_THAT(made.error().message(), AllOf(HasSubstr(field), HasSubstr(remedy))) << spec;
}

TEST_F(QueueSchema, QueuesThatMakeNoSenseAreRefused) {
  struct Case {
    const char *spec, *field, *remedy;
  };
  const Case cases[] = {
      {R"({"parent":"research"})", "spec.parent", "must not be the queue itself"},
      {R"({"parent":"Team A"})", "spec.parent", "should match"},
      {R"({"quotas":[{"guaranteed":8}]})", "spec.quotas[0].pool", "Required value"},
      {R"({"quotas":[{"pool":"a"},{"pool":"b","guaranteed":8,"limit":4}]})", "spec.quotas[1]",
       "raise limit or lower guaranteed"},
      {R"({"quotas":[{"pool":"a","guaranteed":8,"lendable":9}]})", "spec.quotas[0]",
       "lower lendable or raise guaranteed"},
      {R"({"quotas":[{"pool":"a","lendable":1}]})", "spec.quotas[0]", "lower lendable or raise guaranteed"},
      {R"({"quotas":[{"pool":"a","weight":0}]})", "spec.quotas[0].weight", "greater than or equal to 1"},
      {R"({"quotas":[{"pool":"a","guaranteed":-1}]})", "spec.quotas[0].guaranteed", "greater than or equal to 0"},
      {R"({"quotas":[{"pool":"a","guaranteed":0.5}]})", "spec.quotas[0].guaranteed", "must be of type integer"},
      {R"({"quotas":[{"pool":"a"},{"pool":"a"}]})", "spec.quotas[1]", "Duplicate value"},
      {R"({"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"In"}]}})", "spec.namespaceSelector",
       "need values"},
      {R"({"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"Exists","values":["a"]}]}})",
       "spec.namespaceSelector", "must have none"},
      {R"({"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"Is"}]}})", "operator",
       "\"In\", \"NotIn\", \"Exists\", \"DoesNotExist\""},
      {R"({"order":"Fifo"})", "spec.order", "\"BestEffortFifo\", \"StrictFifo\""},
      {R"({"reclaim":"Sometimes"})", "spec.reclaim", "\"Any\", \"LowerPriority\", \"Never\""},
      {R"({"stop":"HoldAndDrain"})", "spec.stop", "\"None\", \"Hold\", \"Drain\""},
      {R"({"minimumRuntimeSeconds":-1})", "spec.minimumRuntimeSeconds", "greater than or equal to 0"},
      {R"({"maximumRuntimeSeconds":0})", "spec.maximumRuntimeSeconds", "greater than or equal to 1"},
      {R"({"preemptionDelaySeconds":315360001})", "spec.preemptionDelaySeconds", "less than or equal to 315360000"},
      {R"({"preemptionNoticeSeconds":3601})", "spec.preemptionNoticeSeconds", "less than or equal to 3600"},
  };
  for (const Case& c : cases) ExpectRefused(Try<api::GpuQueue>(c.spec), c.spec, c.field, c.remedy);
}

TEST_F(QueueSchema, QueuesAtTheLimitsAreTaken) {
  for (const char* spec : {
           R"({"quotas":[{"pool":"a","guaranteed":8,"limit":8,"lendable":8},{"pool":"b","limit":0}]})",
           R"({"quotas":[{"pool":"default","guaranteed":0,"limit":0,"lendable":0,"weight":1000000}]})",
           R"({"parent":"org","quotas":[],"namespaceSelector":{}})",
           R"({"namespaceSelector":{"matchLabels":{"team":"a"},"matchExpressions":[{"key":"t","operator":"Exists"},)"
           R"({"key":"team","operator":"NotIn","values":["b"]}]}})",
       }) {
    const auto made = Try<api::GpuQueue>(spec);
    EXPECT_TRUE(made) << spec << ": " << made.error().message();
  }
}

TEST_F(QueueSchema, AQueueWithoutASpecGetsTheDefaults) {
  const auto made = Try<api::GpuQueue>(nullptr);
  ASSERT_TRUE(made) << made.error().message();
  const kube::Json written = FromText(kube::EncodeObject(KindOf<api::GpuQueue>(), **made));
  EXPECT_EQ(*written.Find("spec"), Must(kube::ParseJson(R"({"order":"BestEffortFifo","reclaim":"Any","stop":"None",)"
                                                        R"("minimumRuntimeSeconds":0,"preemptionDelaySeconds":0,)"
                                                        R"("preemptionNoticeSeconds":30})")));
  EXPECT_EQ(kit::ReasonOf(*made, "Reconciling"), "Pending");
}

TEST_F(QueueSchema, PoolsThatMakeNoSenseAreRefused) {
  struct Case {
    const char *spec, *field, *remedy;
  };
  const Case cases[] = {
      {nullptr, "spec", "Required value"},
      {"{}", "spec.nodeSelector", "Required value"},
      {R"({"nodeSelector":{}})", "spec.nodeSelector", "at least 1 properties"},
      {R"({"nodeSelector":{"gpu":true}})", "spec.nodeSelector.gpu", "must be of type string"},
      {R"({"nodeSelector":{"gpu":"NVIDIA A100-SXM4-80GB"}})", "spec.nodeSelector", "values that labels can have"},
      {R"({"nodeSelector":{"gpu":"a100"},"resource":"gpu"})", "spec.resource", "for example nvidia.com/gpu"},
      {R"({"nodeSelector":{"gpu":"a100"},"resource":"nvidia.com/"})", "spec.resource", "for example nvidia.com/gpu"},
      {R"({"nodeSelector":{"gpu":"a100"},"resource":""})", "spec.resource", "for example nvidia.com/gpu"},
      {R"({"nodeSelector":{"gpu":"a100"},"placement":"Pack"})", "spec.placement", "\"BinPack\", \"Spread\""},
  };
  for (const Case& c : cases) {
    ExpectRefused(Try<api::NodePool>(c.spec), c.spec ? c.spec : "no spec", c.field, c.remedy);
  }
}

TEST_F(QueueSchema, PoolsOfAnyVendorAreTaken) {
  for (const char* resource : {"nvidia.com/gpu", "amd.com/gpu", "google.com/tpu", "nvidia.com/mig-1g.5gb",
                               "xilinx.com/fpga-xilinx_u30_gen3x4_base_1-0", "gpu.intel.com/i915"}) {
    const std::string spec = R"({"nodeSelector":{"gpu":"a"},"resource":")" + std::string(resource) + R"("})";
    const auto made = Try<api::NodePool>(spec.c_str());
    EXPECT_TRUE(made) << resource << ": " << made.error().message();
  }
}

TEST_F(QueueSchema, NamesThatNobodyCouldReferToAreRefused) {
  const char* spec = R"({"nodeSelector":{"gpu":"a100"}})";
  const std::string longest(63, 'a');
  EXPECT_TRUE(Try<api::NodePool>(spec, longest));
  EXPECT_TRUE(Try<api::GpuQueue>("{}", longest));
  EXPECT_TRUE(Try<api::GpuQueue>("{}", api::kDefaultQueue));
  ExpectRefused(Try<api::NodePool>(spec, longest + "a"), "", "metadata.name", "at most 63 characters");
  ExpectRefused(Try<api::GpuQueue>("{}", longest + "a"), "", "metadata.name", "at most 63 characters");
  ExpectRefused(Try<api::NodePool>(spec, api::kDefaultPool), "", "metadata.name", "choose another name");
}

}  // namespace
}  // namespace grus::testing
