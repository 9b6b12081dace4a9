// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/worker_devices.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

TEST(DevicesOf, WhatTheTemplateAsksForCountsElseGpusPerWorker) {
  struct Case {
    const char* rule;
    const char* containers;
    const char* resource;
    int count;
  };
  const Case kCases[] = {
      {"no template", "null", "nvidia.com/gpu", 2},
      {"a limit", R"([{"name":"worker","resources":{"limits":{"amd.com/gpu":"4"}}}])", "amd.com/gpu", 4},
      {"a number", R"([{"name":"worker","resources":{"limits":{"google.com/tpu":4}}}])", "google.com/tpu", 4},
      {"a request", R"([{"name":"worker","resources":{"requests":{"nvidia.com/mig-1g.5gb":1}}}])",
       "nvidia.com/mig-1g.5gb", 1},
      {"more than gpusPerWorker", R"([{"name":"worker","resources":{"limits":{"nvidia.com/gpu":"8"}}}])",
       "nvidia.com/gpu", 8},
      {"a device that nobody trains on", R"([{"name":"worker","resources":{"limits":{"cpu":"9","rdma/hca":"1"}}}])",
       "nvidia.com/gpu", 2},
      {"memory of a GPU is no GPU", R"([{"name":"worker","resources":{"limits":{"nvidia.com/gpumem":"8000"}}}])",
       "nvidia.com/gpu", 2},
      {"nor is a share of its cores",
       R"([{"name":"worker","resources":{"limits":{"hygon.com/dcucores":"60","hygon.com/dcunum":"1"}}}])",
       "hygon.com/dcunum", 1},
      {"kinds that a vendor numbers",
       R"([{"name":"worker","resources":{"limits":{"huawei.com/Ascend910-memory":"32","huawei.com/Ascend910B":"8"}}}])",
       "huawei.com/Ascend910B", 8},
      {"part of a GPU, on which one process trains",
       R"([{"name":"worker","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":300}}}])",
       "ai.centauruscloud.io/gpu-milli", 1},
      {"whole GPUs of a shared node, each with its process",
       R"([{"name":"worker","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":2000}}}])",
       "ai.centauruscloud.io/gpu-milli", 2},
      {"sixteen of them", R"([{"name":"worker","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":"16000"}}}])",
       "ai.centauruscloud.io/gpu-milli", 16},
      {"the same by Alnair's names",
       R"([{"name":"worker","resources":{"limits":{"alnair/vgpu-memory":"2","alnair/vgpu-compute":"50"}}}])",
       "alnair/vgpu-compute", 1},
      {"another container", R"([{"name":"side","resources":{"limits":{"amd.com/gpu":"4"}}}])", "nvidia.com/gpu", 2},
      {"nothing of it", R"([{"name":"worker","resources":{"limits":{"amd.com/gpu":"0"}}}])", "nvidia.com/gpu", 2},
      {"no amount", R"([{"name":"worker","resources":{"limits":{"amd.com/gpu":"many"}}}])", "nvidia.com/gpu", 2},
      {"no list", R"("none")", "nvidia.com/gpu", 2},
  };
  for (const Case& c : kCases) {
    api::WorkersSpec workers;
    workers.gpus_per_worker = 2;
    workers.pod_template["spec"]["containers"] = *kube::ParseJson(c.containers);
    EXPECT_EQ(DevicesOf(workers).resource, c.resource) << c.rule;
    EXPECT_EQ(DevicesOf(workers).count, c.count) << c.rule;
  }
}

TEST(DevicesOf, PartOfAGpuCountsAsThatManyThousandths) {
  api::WorkersSpec workers;
  workers.gpus_per_worker = 2;
  EXPECT_EQ(DevicesOf(workers).milli, 2000);
  workers.pod_template["spec"]["containers"] = *kube::ParseJson(
      R"([{"name":"worker","resources":{"limits":{"alnair/vgpu-memory":"2","alnair/vgpu-compute":"50"}}}])");
  EXPECT_EQ(DevicesOf(workers).milli, 500);
  EXPECT_EQ(DevicesOf(workers).part.Extended("alnair/vgpu-memory"), 2);
  EXPECT_EQ(DevicesOf(workers).part.Extended("alnair/vgpu-compute"), 50);
}

}  // namespace
}  // namespace grus
