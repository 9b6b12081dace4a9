// SPDX-License-Identifier: Apache-2.0
// tests/charts/rights_test.sh compares the rights with the chart's, on a real control plane.
#include "controllers/manager/needed_rights.h"

#include <gmock/gmock.h>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace grus {
namespace {

using kube::testing::FakeClock;
using kube::testing::FakeTransport;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Texts(const std::vector<Right>& rights) {
  std::vector<std::string> texts;
  for (const Right& right : rights) texts.push_back(right.Text());
  return texts;
}

TEST(NeededRights, FollowTheControllers) {
  Options options;
  options.controllers = {"queues"};
  EXPECT_THAT(Texts(NeededRights(options)), Contains("patch gpuqueues.ai.centauruscloud.io/status"));
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains(StartsWith("create secrets"))));
  options.controllers = {"elastic"};
  EXPECT_THAT(Texts(NeededRights(options)), Contains("create secrets"));
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains(HasSubstr("podgroups"))));
  options.controllers = {"elastic", "gang"};
  EXPECT_THAT(Texts(NeededRights(options)), Contains("create podgroups.scheduling.x-k8s.io"));
}

TEST(NeededRights, OfTheExtenderAreToBindAndToBeFound) {
  Options options;
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains(HasSubstr("binding"))));
  options.controllers = {"extender"};
  options.own_namespace = "grus-system";
  EXPECT_THAT(Texts(NeededRights(options)), Contains("create pods/binding"));
  EXPECT_THAT(Texts(NeededRights(options)), Contains("watch configmaps in kube-system"));
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains(HasSubstr("endpointslices"))));
  options.extender_service = "grus-extender";
  options.extender_pod_address = "10.1.2.3";
  EXPECT_THAT(Texts(NeededRights(options)),
              Contains("patch endpointslices.discovery.k8s.io grus-extender-ipv4 in grus-system"));
}

TEST(NeededRights, AreInEachManagedNamespaceAndThoseOfNodesInNone) {
  Options options;
  options.namespaces = {"team-a", "team-b"};
  const std::vector<std::string> texts = Texts(NeededRights(options));
  EXPECT_THAT(texts, Contains("create secrets in team-a"));
  EXPECT_THAT(texts, Contains("create secrets in team-b"));
  EXPECT_THAT(texts, Contains("watch nodes"));
  EXPECT_THAT(texts, Not(Contains("list pods")));
  options.count_all_pods = true;
  EXPECT_THAT(Texts(NeededRights(options)), Contains("list pods"));
}

TEST(NeededRights, ForOwnersOfPodsAreThoseThatAreListed) {
  Options options;
  options.controllers = {"elastic", "profiler"};
  options.owner_kinds = {{"ray.io", "rayclusters"}};
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains(HasSubstr("rayclusters")))) << "without a Prometheus";
  options.usage_prometheus = "http://p:9090";
  EXPECT_THAT(Texts(NeededRights(options)), Contains("get rayclusters.ray.io"));
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains("patch rayclusters.ray.io")));
  EXPECT_THAT(Texts(NeededRights(options)), Not(Contains("patch elastichorovodjobs.ai.centauruscloud.io")));
  options.alnair_annotations = true;
  options.namespaces = {"team-a"};
  EXPECT_THAT(Texts(NeededRights(options)), Contains("patch rayclusters.ray.io in team-a"));
  EXPECT_THAT(Texts(NeededRights(options)), Contains("patch elastichorovodjobs.ai.centauruscloud.io in team-a"));
}

TEST(MissingRights, AreThoseThatTheApiServerDoesNotAllow) {
  FakeClock clock;
  FakeTransport transport(clock);
  kube::Client client(transport, nullptr, clock);
  transport.Handle("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                   [](const kube::HttpRequest& request, auto&) -> kube::Result<kube::HttpResponse> {
                     const bool is_allowed = request.body.find("secrets") == std::string::npos;
                     return kube::HttpResponse{
                         201, {}, is_allowed ? R"({"status":{"allowed":true}})" : R"({"status":{"allowed":false}})"};
                   });
  const std::vector<Right> rights = {{"get", "batch", "jobs", "", "", ""},
                                     {"create", "", "secrets", "team-a", "", ""},
                                     {"patch", "", "pods/status", "", "p", ""}};

  const auto missing = MissingRights(client, rights, clock, {});

  ASSERT_TRUE(missing) << missing.error().message();
  EXPECT_THAT(Texts(*missing), ElementsAre("create secrets in team-a"));
  std::vector<std::string> asked;
  for (const auto& request : transport.requests()) asked.push_back(request.body);
  EXPECT_THAT(asked,
              Contains(HasSubstr(R"("resourceAttributes":{"verb":"patch","resource":"pods","subresource":"status")")));
  EXPECT_THAT(asked, Contains(HasSubstr(R"("group":"batch")")));
  EXPECT_THAT(asked, Contains(HasSubstr(R"("namespace":"team-a")")));
}

TEST(MissingRights, AreNotKnownWithoutAnAnswer) {
  FakeClock clock;
  FakeTransport transport(clock);
  kube::Client client(transport, nullptr, clock);
  transport.Handle("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                   [](auto&, auto&) -> kube::Result<kube::HttpResponse> {
                     return kube::Error(kube::ErrorCode::kUnavailable, "connection refused");
                   });
  EXPECT_FALSE(MissingRights(client, {{"get", "batch", "jobs", "", "", ""}}, clock, {}));
}

}  // namespace
}  // namespace grus
