// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/quotas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kResource[] = "resourcequotas";

// Quotas of an API server in this process; nobody counts but the test.
class QuotasTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    Create("namespaces", Named("v1", "Namespace", "team-b"));
    quotas_.OnMore([this](const std::string& ns) {
      std::lock_guard lock(mutex_);
      told_.push_back(ns);
    });
    StartCaches();
  }
  void Add(const std::string& ns, const std::string& name) {
    Create(kResource, Named("v1", "ResourceQuota", name, ns));
    SetStatus(kResource, {ns, name}, R"({"hard":{"pods":"4"},"used":{"pods":"2"}})");
    Settle();
  }
  std::vector<std::string> Told() {
    std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }

  kube::Informer& cache_ = Cache<kube::ResourceQuota>();
  Quotas quotas_{cache_};
  std::mutex mutex_;
  std::vector<std::string> told_;
};

TEST_F(QuotasTest, AreThoseOfOneNamespaceByName) {
  Add("team-a", "two");
  Add("team-a", "one");
  Add("team-b", "other");

  const QuotaList quotas = quotas_.Of("team-a");

  ASSERT_EQ(quotas.size(), 2U);
  EXPECT_EQ(quotas[0]->metadata.name, "one");
  EXPECT_EQ(quotas[1]->metadata.name, "two");
  EXPECT_THAT(quotas_.Of("team-c"), IsEmpty());
}

TEST_F(QuotasTest, TellOnlyOfMore) {
  Add("team-a", "team");
  Told();

  SetStatus(kResource, {"team-a", "team"}, R"({"hard":{"pods":"4"},"used":{"pods":"3"}})");
  Settle();
  EXPECT_THAT(Told(), IsEmpty());

  SetStatus(kResource, {"team-a", "team"}, R"({"hard":{"pods":"4"},"used":{"pods":"2"}})");
  Settle();
  EXPECT_THAT(Told(), ElementsAre("team-a"));

  ASSERT_TRUE(server_.Delete(kResource, {"team-a", "team"}));
  Settle();
  EXPECT_THAT(Told(), ElementsAre("team-a"));
}

}  // namespace
}  // namespace grus
