// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/client_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/core_v1.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What waits for a free stream in this process is not in the server's own numbers.
TEST(ClientMetrics, H4EachRequestIsTimedAsTheClientSawIt) {
  Registry registry;
  ClientMetrics metrics(registry, "api");

  metrics.OnRequest("get", KindOf<Pod>(), 200, 300ms);
  metrics.OnRequest("apply", KindOf<Pod>(), 409, 10ms);

  EXPECT_THAT(registry.Text(),
              AllOf(HasSubstr(R"(rest_client_request_duration_seconds_bucket{verb="GET",host="api",le="0.25"} 0)"),
                    HasSubstr(R"(rest_client_request_duration_seconds_bucket{verb="GET",host="api",le="0.5"} 1)"),
                    HasSubstr(R"(rest_client_request_duration_seconds_count{verb="PATCH",host="api"} 1)"),
                    HasSubstr(R"(rest_client_requests_total{code="409",method="PATCH",host="api"} 1)")));
}

TEST(ClientMetrics, ARequestWithoutAnAnswerIsCountedAsSuch) {
  Registry registry;
  ClientMetrics(registry, "api").OnRequest("delete", KindOf<Pod>(), 0, 10s);
  EXPECT_THAT(registry.Text(), HasSubstr(R"(rest_client_requests_total{code="<error>",method="DELETE",host="api"} 1)"));
}

TEST(ClientMetrics, ADryRunIsAPostThatCreatesNothing) {
  Registry registry;
  ClientMetrics(registry, "api").OnRequest("dry-run", KindOf<Pod>(), 201, 10ms);
  EXPECT_THAT(registry.Text(), AllOf(HasSubstr(R"(rest_client_requests_total{code="201",method="POST",host="api"} 1)"),
                                     HasSubstr(R"(grus_requests_total{verb="dry-run",kind="Pod"} 1)")));
}

TEST(ClientMetrics, TheLengthOfAWatchOrALogIsNoLatency) {
  Registry registry;
  ClientMetrics(registry, "api").OnRequest("watch", KindOf<Pod>(), 200, 10min);
  ClientMetrics(registry, "api").OnRequest("log", KindOf<Pod>(), 0, 1min);
  EXPECT_THAT(registry.Text(), Not(HasSubstr("duration_seconds")));
}

}  // namespace
}  // namespace kube
