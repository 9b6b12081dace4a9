// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_parts.h"

#include <gtest/gtest.h>

#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

// As the agent sees it: each container has its part on one GPU, or whole ones for itself.
TEST(PodParts, ContainersWithPartsThatComeToAThousandInSumHaveNoWholeGpus) {
  struct Case {
    std::vector<std::int64_t> containers;
    std::int64_t whole;
  };
  for (const Case& c : {Case{{1000, 1000}, 2}, Case{{2000, 1000}, 3}, Case{{500, 500, 500, 500}, 0},
                        Case{{1500, 500}, 0}, Case{{500, 500}, 0}, Case{{2000, 300}, 0}}) {
    kube::Pod pod;
    for (const std::int64_t milli : c.containers) {
      pod.spec.containers.emplace_back().resources.requests = {{api::kGpuMilliResource, kube::Quantity(milli)}};
    }
    const Resources request = RequestOf(pod);
    EXPECT_EQ(WholeGpusOf(request), c.whole);
    EXPECT_EQ(TextOf(request).find("parts of GPUs"), std::string::npos) << "users are told of resources alone";
  }
}

// The kubelet hands on any thousandths of what an init container had.
TEST(PodParts, LessThanTheInitContainerBeforeHadIsNoWholeGpus) {
  struct Case {
    std::vector<std::int64_t> init, app;
    std::int64_t whole;
  };
  for (const Case& c :
       {Case{{2000}, {2000}, 2}, Case{{1000}, {2000}, 2}, Case{{2000}, {1000}, 0}, Case{{2000}, {1000, 1000}, 0},
        Case{{3000}, {2000}, 0}, Case{{2000, 1000}, {2000}, 0}, Case{{2000}, {2000, 1000}, 3}}) {
    kube::Pod pod;
    const auto add = [](std::vector<kube::Container>& to, std::int64_t milli) {
      to.emplace_back().resources.requests = {{api::kGpuMilliResource, kube::Quantity(milli)}};
    };
    for (const std::int64_t milli : c.init) add(pod.spec.init_containers, milli);
    for (const std::int64_t milli : c.app) add(pod.spec.containers, milli);
    EXPECT_EQ(WholeGpusOf(RequestOf(pod)), c.whole) << c.init.front() << ", " << c.app.front();
  }
}

}  // namespace
}  // namespace grus
