// SPDX-License-Identifier: Apache-2.0
#include "controllers/prometheus/prometheus.h"

#include <gmock/gmock.h>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

std::string Vector(const std::string& result) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}

// What Ask() makes of this body.
kube::Result<std::optional<double>> Answer(const std::string& body) {
  const kube::testing::FakeClock clock;
  kube::testing::FakeTransport network(clock);
  network.Expect("GET", "/", kube::HttpResponse{200, {}, body});
  Prometheus prometheus(
      [&](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
        return std::shared_ptr<kube::Transport>(&network, [](kube::Transport*) {});
      },
      clock, {"http://p:9090"});
  return prometheus.Ask("http://p:9090", "x", {});
}

TEST(Prometheus, GivesTheNumberOfOneSeries) {
  struct Case {
    std::string body;
    std::optional<double> want;
  };
  const std::vector<Case> cases = {
      {Vector(R"({"metric":{"job":"a"},"value":[1435781451.781,"812.4"]})"), 812.4},
      {R"({"status":"success","data":{"resultType":"scalar","result":[1,"5"]}})", 5},
      {Vector(""), {}},
      {Vector(R"({"value":[1,"NaN"]})"), {}},
      {Vector(R"({"value":[1,"+Inf"]})"), {}},
      {Vector(R"({"value":["1"]})"), {}},
      {Vector(R"({})"), {}},
  };
  for (const Case& c : cases) {
    const auto value = Answer(c.body);
    ASSERT_TRUE(value) << c.body;
    EXPECT_EQ(*value, c.want) << c.body;
  }
}

TEST(Prometheus, SaysWhatIsWrongWithAnAnswer) {
  struct Case {
    std::string body;
    const char* want;
  };
  const std::vector<Case> cases = {
      {"", "not from Prometheus"},
      {"<html>", "not from Prometheus"},
      {"{}", "no status"},
      {R"({"status":"success","data":{}})", "no result"},
      {R"({"status":"error","errorType":"bad_data","error":"parse error at char 3"})", "parse error at char 3"},
      {Vector(R"({"value":[1,"1"]},{"value":[1,"2"]})"), "2 series"},
      {R"({"status":"success","data":{"resultType":"matrix","result":[]}})", "matrix"},
      {std::string(1000, '['), "not from Prometheus"},
      {std::string(Prometheus::kMaxAnswer + 1, '['), "too long"},
  };
  for (const Case& c : cases) {
    const auto value = Answer(c.body);
    ASSERT_FALSE(value) << c.body.substr(0, 100);
    EXPECT_THAT(value.error().message(), HasSubstr(c.want));
    EXPECT_LT(value.error().message().size(), 500U);
  }
}

TEST(Prometheus, AsksOneConnectionAServerAndKeepsThePathOfTheUrl) {
  const kube::testing::FakeClock clock;
  kube::testing::FakeTransport network(clock);
  network.Handle("GET", "/", [](const kube::HttpRequest&, const std::stop_token&) {
    return kube::HttpResponse{200, {}, Vector(R"({"value":[1,"7"]})")};
  });
  std::vector<std::string> connected;
  Prometheus prometheus(
      [&](const std::string& server) -> kube::Result<std::shared_ptr<kube::Transport>> {
        connected.push_back(server);
        return std::shared_ptr<kube::Transport>(&network, [](kube::Transport*) {});
      },
      clock, {"http://p:9090"});

  for (int i = 0; i < 3; ++i) EXPECT_EQ(*prometheus.Ask("http://p:9090/prom", "a b", {}), 7);

  EXPECT_THAT(connected, ::testing::ElementsAre("http://p:9090"));
  EXPECT_EQ(network.requests().front().target, "/prom/api/v1/query?query=a%20b");
}

// S7: a TrialJob is no way to look into the cluster's network.
TEST(Prometheus, AsksOnlyServersThatAreListed) {
  const kube::testing::FakeClock clock;
  int connected = 0;
  Prometheus prometheus(
      [&](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
        ++connected;
        return kube::Error(kube::ErrorCode::kUnavailable, "no network");
      },
      clock, {"http://p:9090/prom", "https://q"});
  for (const char* url : {"http://p:9091", "https://p:9090", "http://169.254.169.254", "http://p.other:9090"}) {
    const auto answer = prometheus.Ask(url, "x", {});
    ASSERT_FALSE(answer) << url;
    EXPECT_EQ(answer.error().code(), kube::ErrorCode::kForbidden) << url;
    EXPECT_THAT(answer.error().message(), HasSubstr("--prometheus-servers")) << url;
  }
  EXPECT_EQ(connected, 0);
  for (const char* url : {"http://p:9090", "http://p:9090/any", "https://q:443"}) (void)prometheus.Ask(url, "x", {});
  EXPECT_EQ(connected, 3);
}

TEST(Prometheus, NamesTheServerThatDoesNotAnswerWell) {
  const kube::testing::FakeClock clock;
  kube::testing::FakeTransport network(clock);
  Prometheus prometheus(
      [&](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
        return std::shared_ptr<kube::Transport>(&network, [](kube::Transport*) {});
      },
      clock, {"http://p:9090"});
  network.Expect("GET", "/", kube::HttpResponse{302, {}, ""});
  EXPECT_THAT(prometheus.Ask("http://p:9090", "x", {}).error().message(),
              HasSubstr("http://p:9090: it answered with status 302"));
  EXPECT_THAT(prometheus.Ask("http://u:p@p:9090", "x", {}).error().message(), HasSubstr("ask Prometheus"));
  EXPECT_THAT(prometheus.Ask("ftp://p", "x", {}).error().message(), HasSubstr("ask Prometheus"));
}

}  // namespace
}  // namespace grus
