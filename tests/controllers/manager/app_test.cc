// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"

namespace grus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(App, ItsMetricsTellOfDecisionsAndPools) {
  kube::testing::FakeClock clock;
  kube::testing::FakeApiServer server(clock);
  kube::Client client(server, nullptr, clock);
  const kube::Log log(kube::LogLevel::kOff);
  kube::Registry metrics;
  const App app(Options(), client, nullptr, clock, log, metrics, "test");
  EXPECT_THAT(metrics.Text(), AllOf(HasSubstr(R"(grus_decision_duration_seconds_count{decision="starts"} 0)"),
                                    HasSubstr(R"(grus_pool_free_gpus{pool="default",nodes="empty"} 0)")));
}

}  // namespace
}  // namespace grus
