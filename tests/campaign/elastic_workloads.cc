// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_workloads.h"

#include <memory>
#include <utility>

#include "tests/campaign/elastic_lives.h"
#include "tests/campaign/elastic_queues.h"
#include "tests/campaign/elastic_quotas.h"
#include "tests/campaign/elastic_troubles.h"

namespace grus::testing {

kube::testing::Workloads ElasticWorkloads(kube::Duration slack) {
  kube::testing::Workloads workloads;
  for (const auto& stories : {ElasticLives(), ElasticTroubles(), ElasticQuotas(), ElasticQueues()}) {
    for (ElasticStory story : stories) {
      story.slack = slack;
      workloads.push_back(std::make_unique<ElasticWorkload>(std::move(story)));
    }
  }
  return workloads;
}

}  // namespace grus::testing
