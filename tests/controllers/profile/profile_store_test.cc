// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/profile_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"
#include "crds/types/all_crds.h"
#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using testing::AtSecond;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakePoint;

constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";
constexpr char kFingerprint[] = "0123456789abcdef0123456789abcdef";
constexpr auto kSamples = api::ThroughputUnit::kSamplesPerSecond;
constexpr auto kMonth = 30 * 24h;

std::vector<std::string> Names(const std::vector<api::ProfilePoint>& points) {
  std::vector<std::string> names;
  for (const api::ProfilePoint& point : points) names.push_back(point.name);
  return names;
}

// Lets a test do something between a read of the store and its write.
class Interposed final : public kube::Transport {
 public:
  explicit Interposed(kube::Transport& inner) : inner_(inner) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (request.method != "GET") {
      ++writes;
      if (before_write) std::exchange(before_write, nullptr)();
      if (retry_after > 0) return kube::HttpResponse{429, {{"retry-after", std::to_string(retry_after)}}, "{}"};
    }
    return inner_.Send(request, std::move(stop));
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return inner_.Open(request, std::move(stop));
  }

  std::function<void()> before_write;
  int writes = 0;
  int retry_after = 0;  // Seconds; of writes, which are refused meanwhile.

 private:
  kube::Transport& inner_;
};

class ProfileStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const kube::CrdInfo& info : api::AllCrds()) {
      ASSERT_TRUE(server_.Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(info)));
    }
    profiles_.Start();
    ASSERT_TRUE(profiles_.WaitForSync(clock_.Now() + 1h));
  }
  void TearDown() override {
    profiles_.Stop();
    profiles_.Join();
  }

  static NewSpeeds Speeds(std::vector<api::ProfilePoint> points, api::ThroughputUnit unit = kSamples) {
    NewSpeeds speeds{kFingerprint, {}, unit, std::move(points)};
    speeds.workload.image = "example.com/bert:1";
    return speeds;
  }
  // Waits of a retry end when the clock moves; this moves it until `write` is done.
  kube::Status Done(const std::function<kube::Status()>& write) {
    kube::Status done;
    std::atomic<bool> is_done{false};
    std::thread thread([&] {
      done = write();
      is_done = true;
    });
    while (!is_done) {
      std::this_thread::yield();
      clock_.Advance(10ms);
    }
    thread.join();
    return done;
  }
  kube::Status Save(const NewSpeeds& speeds) {
    return Done([&] { return store_.Save(speeds); });
  }
  std::shared_ptr<const api::WorkloadProfile> Live() {
    const auto profile = direct_.Get<api::WorkloadProfile>({"", kFingerprint});
    return profile ? *profile : nullptr;
  }

  kube::testing::FakeClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Log log_{kube::LogLevel::kOff};
  kube::Client direct_{server_, nullptr, clock_};
  Interposed wire_{server_};
  kube::Client client_{wire_, nullptr, clock_};
  kube::Informer profiles_{direct_, kube::KindOf<api::WorkloadProfile>(), {}, clock_, log_};
  ProfileStore store_{client_, profiles_, clock_};
  ProfileStore other_{direct_, profiles_, clock_};
};

TEST_F(ProfileStoreTest, TheFirstMeasurementMakesTheProfileWithItsStatus) {
  const auto saved = Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100), MakePoint({"A100", 2, 1, 32}, 105)}));

  ASSERT_TRUE(saved) << saved.error().message();
  const auto profile = Live();
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->spec.fingerprint, kFingerprint);
  EXPECT_EQ(profile->spec.workload.image, "example.com/bert:1");
  EXPECT_THAT(Names(profile->spec.points), ElementsAre("A100-1g-1n-32b", "A100-2g-1n-32b"));
  EXPECT_EQ(profile->status.points, 2);
  EXPECT_EQ(profile->status.gpus, "A100");
  EXPECT_TRUE(kube::IsConditionTrue(profile->status.conditions, "Ready"));
}

TEST_F(ProfileStoreTest, WhatIsSavedIsFoundByItsConfigurationUntilItIsTooOld) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100, 1000), MakePoint({"A100", 2, 1, 32}, 105, 5000)})));
  ASSERT_TRUE(clock_.AwaitWaiters(1));  // The cache has seen it.

  const KnownSpeeds known = store_.Find(kFingerprint, 100s, AtSecond(5100));
  EXPECT_EQ(known.unit, kSamples);
  EXPECT_EQ(known.points.count({"A100", 2, 1, 32}), 1u);
  EXPECT_EQ(known.points.count({"A100", 1, 1, 32}), 0u);
  EXPECT_EQ(store_.Find(kFingerprint, kMonth, AtSecond(5100)).points.count({"A100", 1, 1, 32}), 1u);
  EXPECT_TRUE(store_.Find("another", kMonth, AtSecond(5100)).points.empty());
}

TEST_F(ProfileStoreTest, SavingTheSameAgainWritesNothing) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  wire_.writes = 0;
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  EXPECT_EQ(wire_.writes, 0);
}

TEST_F(ProfileStoreTest, TwoWritersDoNotLoseEachOthersPoints) {
  for (const bool is_there : {false, true}) {
    if (is_there) {
      ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 4, 1, 32}, 110)})));
    }
    wire_.before_write = [&] { EXPECT_TRUE(other_.Save(Speeds({MakePoint({"H100", is_there ? 2 : 1, 1, 32}, 50)}))); };

    ASSERT_TRUE(Save(Speeds({MakePoint({"A100", is_there ? 2 : 1, 1, 32}, 100)})));
  }
  EXPECT_THAT(Names(Live()->spec.points),
              ::testing::UnorderedElementsAre("H100-1g-1n-32b", "A100-1g-1n-32b", "A100-4g-1n-32b", "H100-2g-1n-32b",
                                              "A100-2g-1n-32b"));
  EXPECT_EQ(Live()->status.points, 5);
}

TEST_F(ProfileStoreTest, ASpeedThatNoGpuHasIsNotSaved) {
  const auto saved = Save(Speeds({MakePoint({"A100", 1, 1, 32}, 1e-9)}));
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code(), kube::ErrorCode::kInvalidArgument);
  EXPECT_THAT(saved.error().message(), HasSubstr("is not possible"));
  EXPECT_EQ(wire_.writes, 0);
}

// S10: one namespace cannot fill the cluster with profiles.
TEST_F(ProfileStoreTest, ANamespaceHasSoManyAndTheOldestMakesRoom) {
  // Later than their profiles were made, of which many have the same second.
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock_.WallNow().time_since_epoch()).count();
  const auto save = [&](const std::string& ns, std::size_t number) {
    NewSpeeds speeds = Speeds({MakePoint({"A100", 1, 1, 32}, 100, static_cast<int>(now + 1000 + number))});
    speeds.fingerprint = ns + "-" + std::to_string(number);
    speeds.workload.ns = ns;
    ASSERT_TRUE(Save(speeds));
  };
  save("b", 0);
  for (std::size_t i = 0; i < kMostOfNamespace; ++i) save("a", i);
  // The thread of the cache may wait several times before it has seen them all.
  const auto has_seen_all = [&] {
    return std::ranges::all_of(server_.List(kProfiles), [&](const auto& live) {
      const auto cached = profiles_.Get<api::WorkloadProfile>({"", *live->At({"metadata", "name"})->AsString()});
      return cached && cached->metadata.resource_version == *live->At({"metadata", "resourceVersion"})->AsString();
    });
  };
  while (!has_seen_all()) ASSERT_TRUE(clock_.AwaitWaiters(1));
  save("a", kMostOfNamespace);
  EXPECT_EQ(server_.List(kProfiles).size(), kMostOfNamespace + 1);
  EXPECT_EQ(server_.Get(kProfiles, {"", "a-0"}), nullptr);
  EXPECT_NE(server_.Get(kProfiles, {"", "a-1"}), nullptr);
  EXPECT_NE(server_.Get(kProfiles, {"", "b-0"}), nullptr);
}

TEST_F(ProfileStoreTest, AProfileThatIsDeletedMeanwhileIsMadeAnew) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  wire_.before_write = [&] { EXPECT_TRUE(server_.Delete(kProfiles, {"", kFingerprint})); };

  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 2, 1, 32}, 105)})));

  EXPECT_THAT(Names(Live()->spec.points), ElementsAre("A100-2g-1n-32b"));
}

TEST_F(ProfileStoreTest, WhenAWriterIsAskedToComeLaterSoAreAll) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  wire_.retry_after = 36000;
  ASSERT_FALSE(Save(Speeds({MakePoint({"A100", 2, 1, 32}, 105)})));
  wire_.retry_after = 0;
  const int before = wire_.writes;

  const kube::Status edited = store_.Edit(kFingerprint, [](const api::WorkloadProfile&) {
    return ProfileEdit{{MakePoint({"A100", 4, 1, 32}, 110)}, {}};
  });

  ASSERT_FALSE(edited);
  EXPECT_GT(edited.error().retry_after().value_or(0s), 9min) << "the client waits for ten at most";
  EXPECT_EQ(wire_.writes, before);
  clock_.Advance(10h);
  EXPECT_TRUE(Save(Speeds({MakePoint({"A100", 2, 1, 32}, 105)})));
}

TEST_F(ProfileStoreTest, AnotherUnitIsRefusedAndChangesNothing) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));

  const auto saved = Save(Speeds({MakePoint({"A100", 2, 1, 32}, 100)}, api::ThroughputUnit::kStepsPerSecond));

  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code(), kube::ErrorCode::kInvalidArgument);
  EXPECT_THAT(saved.error().message(), HasSubstr("counts in SamplesPerSecond, these measurements in StepsPerSecond"));
  EXPECT_EQ(Live()->spec.points.size(), 1u);
}

TEST_F(ProfileStoreTest, WhoDoesNotKnowTheNodesFindsTheNewestOfAny) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 8, 1, 32}, 100, 1000), MakePoint({"A100", 8, 2, 32}, 150, 2000)})));
  ASSERT_TRUE(clock_.AwaitWaiters(1));

  const KnownSpeeds known = store_.Find(kFingerprint, kMonth, AtSecond(2000));
  ASSERT_EQ(known.points.count({"A100", 8, 0, 32}), 1u);
  EXPECT_EQ(known.points.at({"A100", 8, 0, 32}).measured.step_milliseconds, "150");
  EXPECT_EQ(known.points.at({"A100", 8, 1, 32}).measured.step_milliseconds, "100");
}

TEST_F(ProfileStoreTest, AnEditSeesWhatOthersWroteMeanwhile) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  wire_.before_write = [&] { EXPECT_TRUE(other_.Save(Speeds({MakePoint({"A100", 2, 1, 32}, 100)}))); };

  const kube::Status edited = Done([&] {
    return store_.Edit(kFingerprint, [&](const api::WorkloadProfile& live) {
      return ProfileEdit{{MakePoint({"A100", static_cast<int>(live.spec.points.size()) + 10, 1, 32}, 100)}, {}};
    });
  });
  ASSERT_TRUE(edited);
  EXPECT_THAT(Names(Live()->spec.points), ElementsAre("A100-1g-1n-32b", "A100-2g-1n-32b", "A100-12g-1n-32b"));
}

TEST_F(ProfileStoreTest, CoRunsOfTwoWritersAreBothKept) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  const auto sample = [](const char* partner) {
    return [=](const api::WorkloadProfile&) {
      ProfileEdit edit;
      edit.co_runs = {{.partner = partner, .gpu_type = "A100", .speed = "0.8", .count = 1, .time = AtSecond(1000)}};
      return edit;
    };
  };
  wire_.before_write = [&] { EXPECT_TRUE(other_.Edit(kFingerprint, sample("vgg"))); };

  ASSERT_TRUE(Done([&] { return store_.Edit(kFingerprint, sample("resnet")); }));

  ASSERT_EQ(Live()->spec.co_runs.size(), 2u);
  EXPECT_EQ(Live()->spec.co_runs[0].name, "vgg@A100");
  EXPECT_EQ(Live()->spec.co_runs[1].name, "resnet@A100");
  EXPECT_EQ(Live()->spec.points.size(), 1u);
}

TEST_F(ProfileStoreTest, ACoRunCountsOnceAlthoughItsStatusHadToBeWrittenAgain) {
  ASSERT_TRUE(Save(Speeds({MakePoint({"A100", 1, 1, 32}, 100)})));
  const auto touch = [&] {
    kube::Json profile = *server_.Get(kProfiles, {"", kFingerprint});
    profile["metadata"]["labels"]["example.com/touched"] = "yes";
    EXPECT_TRUE(server_.Update(kProfiles, std::move(profile)));
  };
  wire_.before_write = [&] { wire_.before_write = touch; };  // Between the measurement and the status.
  int tries = 0;

  ASSERT_TRUE(Done([&] {
    return store_.Edit(kFingerprint, [&](const api::WorkloadProfile&) {
      ++tries;
      ProfileEdit edit;
      edit.co_runs = {{.partner = "vgg", .gpu_type = "A100", .speed = "0.8", .count = 1, .time = AtSecond(1000)}};
      return edit;
    });
  }));

  EXPECT_EQ(tries, 2);
  ASSERT_EQ(Live()->spec.co_runs.size(), 1u);
  EXPECT_EQ(Live()->spec.co_runs[0].count, 1);
}

TEST_F(ProfileStoreTest, NeitherAnEditNorNoMeasurementMakesAProfile) {
  bool is_called = false;
  ASSERT_TRUE(store_.Edit(kFingerprint, [&](const api::WorkloadProfile&) {
    is_called = true;
    return ProfileEdit{};
  }));
  EXPECT_FALSE(is_called);
  ASSERT_TRUE(Save(Speeds({})));
  EXPECT_FALSE(Live());
}

TEST(MergePoints, OfAConfigurationTheNewestStays) {
  const auto points =
      MergePoints({}, {MakePoint({"A100", 1, 1, 32}, 100, 1000), MakePoint({"A100", 2, 1, 32}, 105, 1000)});
  const auto newer = MergePoints(points, {MakePoint({"A100", 1, 1, 32}, 90, 2000)});
  const auto older = MergePoints(newer, {MakePoint({"A100", 1, 1, 32}, 80, 500)});
  EXPECT_THAT(Names(newer), ElementsAre("A100-1g-1n-32b", "A100-2g-1n-32b"));
  EXPECT_EQ(newer.front().measured.step_milliseconds, "90");
  EXPECT_EQ(older, newer);
}

TEST(MergePoints, ThatOfKnownNodesTakesThePlaceOfAnOlderOneOfUnknown) {
  const auto points =
      MergePoints({}, {MakePoint({"A100", 8, 0, 32}, 100, 1000), MakePoint({"A100", 8, 2, 32}, 150, 1000)});
  EXPECT_THAT(Names(MergePoints(points, {MakePoint({"A100", 8, 1, 32}, 90, 2000)})),
              ElementsAre("A100-8g-1n-32b", "A100-8g-2n-32b"));
  EXPECT_THAT(Names(MergePoints(points, {MakePoint({"A100", 8, 1, 32}, 90, 500)})),
              ElementsAre("A100-8g-0n-32b", "A100-8g-2n-32b", "A100-8g-1n-32b"));
}

TEST(MergePoints, OverTheLimitTheOldestGo) {
  std::vector<api::ProfilePoint> points;
  for (int i = 1; i <= 5; ++i) points.push_back(MakePoint({"A100", i, 1, 32}, 100, 1000 - i));
  EXPECT_THAT(Names(MergePoints({}, points, 3)), ElementsAre("A100-1g-1n-32b", "A100-2g-1n-32b", "A100-3g-1n-32b"));
}

TEST(PointName, IsLegalAndTellsConfigurationsApart) {
  EXPECT_EQ(PointName({"A100", 8, 2, 32}), "A100-8g-2n-32b");
  EXPECT_EQ(PointName({"", 8, 0, 0}), "8g-0n-0b");
}

}  // namespace
}  // namespace grus
