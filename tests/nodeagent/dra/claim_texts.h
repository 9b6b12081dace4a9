// SPDX-License-Identifier: Apache-2.0
// Claims and GPUs that tests of the driver make up.
#pragma once

#include <string>
#include <vector>

#include "clientlib/model/json.h"
#include "nodeagent/dra/claim_parts.h"
#include "tests/kit/must.h"

namespace grus::testing {

// "GPU-A0", "GPU-A1", ... of 80 GiB.
inline std::vector<SharedGpu> TwoGpus() {
  return {{.uuid = "GPU-A0", .index = 0, .memory_mib = 81920, .model = "Fake", .driver_version = "580.95.05"},
          {.uuid = "GPU-A1", .index = 1, .memory_mib = 81920, .model = "Fake", .driver_version = "580.95.05"}};
}

// What the scheduler writes of a device; without amounts: the whole device.
inline kube::Json ResultOf(const std::string& device, const std::string& milli = "", const std::string& memory = "",
                           const std::string& request = "gpu") {
  kube::Json result =
      kube::Json::MakeObject({{"request", request}, {"driver", kGpuDriver}, {"pool", "node-1"}, {"device", device}});
  if (!milli.empty()) {
    result["shareID"] = "share-of-" + milli;
    result["consumedCapacity"] = kube::Json::MakeObject({{"milli", milli}, {"memory", memory}});
  }
  return result;
}

inline kube::Json ClaimJson(const std::string& name, std::vector<kube::Json> results) {
  kube::Json claim = kit::FromText(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"namespace":"team-a"},
          "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.ai.centauruscloud.io"}}]}}})");
  claim["metadata"]["name"] = name;
  if (!results.empty()) claim["status"]["allocation"]["devices"]["results"] = kube::Json(std::move(results));
  return claim;
}

}  // namespace grus::testing
