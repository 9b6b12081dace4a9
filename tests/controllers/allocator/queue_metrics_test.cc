// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(QueueMetrics, ShowTheQueuesThatThereAre) {
  kube::Registry registry;
  QueueMetrics metrics(registry);
  metrics.Put({{.queue = "a", .pools = {{.pool = "p", .guaranteed = 8'000, .used = 2'500}}, .running = 2, .waiting = 1},
               {.queue = "b"}});
  EXPECT_THAT(registry.Text(), AllOf(HasSubstr(R"(grus_queue_gpus{queue="a",pool="p",state="guaranteed"} 8)"),
                                     HasSubstr(R"(grus_queue_gpus{queue="a",pool="p",state="used"} 2.5)"),
                                     HasSubstr(R"(grus_queue_jobs{queue="a",state="waiting"} 1)"),
                                     HasSubstr(R"(grus_queue_jobs{queue="b",state="running"} 0)")));
  metrics.Put({{.queue = "b"}});
  EXPECT_THAT(registry.Text(), Not(HasSubstr(R"(queue="a")"))) << "it was deleted";
}

}  // namespace
}  // namespace grus
