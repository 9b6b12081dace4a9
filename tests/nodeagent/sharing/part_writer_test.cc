// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/must.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

// The API server, with a door that a test closes.
class WriteDoor final : public kube::Transport {
 public:
  explicit WriteDoor(kube::Transport& server) : server_(server) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (request.method != "PATCH") return server_.Send(request, std::move(stop));
    ++writes;
    before(request.target);
    if (const int status = refuse(request.target); status != 0) {
      return kube::HttpResponse{status, {}, R"({"kind":"Status","message":"not through this door"})"};
    }
    return server_.Send(request, std::move(stop));
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return server_.Open(request, std::move(stop));
  }

  std::function<int(const std::string& target)> refuse = [](const std::string&) { return 0; };  // The HTTP status.
  std::function<void(const std::string& target)> before = [](const std::string&) {};
  int writes = 0;

 private:
  kube::Transport& server_;
};

class PartWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kit::Must(server_.Create("namespaces", kit::FromText(R"({"metadata":{"name":"a"}})")));
    plugins_.Look(testing::GpusOf(2, 8));
    pods_.Start();
    ASSERT_TRUE(pods_.WaitForSync(system_.Now() + seconds(20)));
  }
  // A pod that asks for 2 GiB, or for nothing.
  std::string AddPod(const std::string& name, bool asks = true, const std::string& annotations = "{}") {
    Json pod =
        kit::FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a"},"spec":{"nodeName":"node-1",
        "containers":[{"name":"c","image":"a"}]}})");
    if (asks) {
      (*pod["spec"]["containers"].AsArray())[0]["resources"]["limits"] =
          Json::MakeObject({{"alnair/vgpu-memory", "2"}});
    }
    pod["metadata"]["name"] = name;
    pod["metadata"]["annotations"] = kit::FromText(annotations);
    const auto made = kit::Must(server_.Create("pods", std::move(pod)));
    Catch();
    return *made->At({"metadata", "uid"})->AsString();
  }
  void Hold(const std::string& pod, int from = 0) {
    holders_.held.push_back(
        {"a", pod, "c", {{"alnair/vgpu-memory", {ToText({"GPU-0", from}), ToText({"GPU-0", from + 1})}}}});
  }
  // Waits until the cache has what the server has.
  void Catch() {
    const kube::TimePoint until = system_.Now() + seconds(20);
    const auto is_current = [&] {
      std::size_t equal = 0;
      for (const auto& pod : pods_.List()) {
        const auto live = server_.Get("pods", pod->metadata.Key());
        equal += live != nullptr && *live->At({"metadata", "resourceVersion"}) == Json(pod->metadata.resource_version);
      }
      return equal == server_.List("pods").size() && pods_.List().size() == equal;
    };
    while (!is_current()) ASSERT_LT(system_.Now(), until);
  }
  // So long a time, in looks each five seconds; what is logged.
  std::string Play(kube::Duration time) {
    ::testing::internal::CaptureStderr();
    for (kube::Duration passed = {}; passed < time; passed += seconds(5)) {
      clock_.Advance(seconds(5));
      writer_.LookOnce();
      Catch();
    }
    return ::testing::internal::GetCapturedStderr();
  }
  int CountIn(const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  std::string Annotation(const std::string& pod, const std::string& key) const {
    const auto live = server_.Get("pods", {"a", pod});
    const Json* const value = live == nullptr ? nullptr : live->At({"metadata", "annotations", key});
    return value == nullptr ? "" : *value->AsString();
  }
  void Change(const std::string& pod, const std::string& patch, const std::string& subresource = "") {
    Json live = *server_.Get("pods", {"a", pod});
    MergePatch(live, kit::FromText(patch));
    kit::Must(server_.Update("pods", std::move(live), subresource));
    Catch();
  }

  kube::testing::ManualClock clock_;
  const kube::SystemClock system_;  // For what waits.
  const kube::Log log_, quiet_{kube::LogLevel::kOff};
  kube::testing::FakeApiServer server_{system_};
  WriteDoor door_{server_};
  kube::Client client_{door_, nullptr, system_};
  NodePods pods_{client_, "node-1", system_, quiet_};
  testing::FakeHolders holders_;
  testing::FakePending pending_;
  testing::FakeEnforcer enforcer_;
  PartPlugins plugins_{holders_, pending_, {.mode = SharingMode::kAlnair, .enforcer = &enforcer_}, clock_, log_};
  PartWatch watch_{[] { return nullptr; }, clock_};
  PartWriter writer_{client_, pods_, holders_, plugins_, clock_, log_, {}, &watch_};
};

TEST_F(PartWriterTest, PodsSayWhatTheyHoldAndThenTheWriterRests) {
  AddPod("p");
  Hold("p");
  Play(minutes(10));
  EXPECT_EQ(Annotation("p", kAlnairGpuIdAnnotation), "GPU-0_0,GPU-0_1");
  EXPECT_EQ(Annotation("p", kAlnairIdAnnotation), "c");
  EXPECT_EQ(Annotation("p", api::kHeldGpusAnnotation), R"({"c":{"gpu":"GPU-0","milli":0,"memoryMiB":2048}})");
  EXPECT_EQ(Annotation("p", api::kEnforcementAnnotation), "None");
  EXPECT_EQ(door_.writes, 1);
}

TEST_F(PartWriterTest, MemoryIsWhatThePodSaysIfItHoldsThousandths) {
  AddPod("p", true, R"({"sharing.ai.centauruscloud.io/memory-mib":"5000"})");
  holders_.held.push_back({"a", "p", "c", {{"ai.centauruscloud.io/gpu-milli", {"GPU-0_0", "GPU-0_1"}}}});
  AddPod("gib", true, R"({"sharing.ai.centauruscloud.io/memory-mib":"5000"})");
  Hold("gib", 2);
  AddPod("senseless", true, R"({"sharing.ai.centauruscloud.io/memory-mib":"much"})");
  holders_.held.push_back({"a", "senseless", "c", {{"ai.centauruscloud.io/gpu-milli", {"GPU-0_500"}}}});
  Play(seconds(5));
  EXPECT_EQ(Annotation("p", api::kHeldGpusAnnotation), R"({"c":{"gpu":"GPU-0","milli":2,"memoryMiB":5000}})");
  EXPECT_EQ(Annotation("gib", api::kHeldGpusAnnotation), R"({"c":{"gpu":"GPU-0","milli":0,"memoryMiB":2048}})");
  EXPECT_EQ(Annotation("senseless", api::kHeldGpusAnnotation), R"({"c":{"gpu":"GPU-0","milli":1,"memoryMiB":8}})");
  EXPECT_EQ(Annotation("p", "sharing.ai.centauruscloud.io/memory-mib"), "5000") << "it stays";
}

TEST_F(PartWriterTest, AContainerThatSetsItsVisibleDevicesOrItsLimitsItselfIsMarked) {
  const auto add = [&](const std::string& name, const std::string& variable) {
    Json pod = kit::FromText(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a"},"spec":{"nodeName":"node-1","containers":[
        {"name":"c","image":"a","env":[{"name":"A","value":"1"},{"value":"all"}],
         "resources":{"limits":{"alnair/vgpu-memory":"2"}}}]}})");
    pod["metadata"]["name"] = name;
    (*(*pod["spec"]["containers"].AsArray())[0]["env"].AsArray())[1]["name"] = variable;
    kit::Must(server_.Create("pods", std::move(pod)));
    Catch();
  };
  add("own", "NVIDIA_VISIBLE_DEVICES");
  Hold("own");
  add("other", "NVIDIA_DRIVER_CAPABILITIES");
  Hold("other", 2);
  add("freed", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  Hold("freed", 4);
  for (const char* one : {"own/c", "other/c", "freed/c"}) enforcer_.holders[one] = Enforcement::kMps;
  const std::string logged = Play(minutes(5));
  EXPECT_EQ(Annotation("own", api::kHeldGpusAnnotation),
            R"({"c":{"gpu":"GPU-0","milli":0,"memoryMiB":2048,"overridden":true}})");
  EXPECT_EQ(Annotation("other", api::kHeldGpusAnnotation), R"({"c":{"gpu":"GPU-0","milli":0,"memoryMiB":2048}})");
  EXPECT_EQ(CountIn(logged, "a container sets NVIDIA_VISIBLE_DEVICES itself"), 1) << logged;
  EXPECT_EQ(CountIn(logged, "pod=a/own"), 1) << logged;
  EXPECT_EQ(Annotation("other", api::kEnforcementAnnotation), "MPS");
  EXPECT_EQ(Annotation("freed", api::kEnforcementAnnotation), "None") << "its own limit wins";

  enforcer_.holders["freed/c"] = Enforcement::kCooperative;
  Change("freed", R"({"metadata":{"annotations":{"sharing.ai.centauruscloud.io/enforcement":null}}})");
  Play(seconds(5));
  EXPECT_EQ(Annotation("freed", api::kEnforcementAnnotation), "Cooperative") << "MPS has no say in this way";
}

TEST_F(PartWriterTest, WhatUsersWriteIsOverwritten) {
  AddPod("p", true, R"({"sharing.ai.centauruscloud.io/gpus":"{\"c\":{\"gpu\":\"GPU-9\"}}","mine":"1"})");
  Hold("p");
  Play(seconds(5));
  EXPECT_THAT(Annotation("p", api::kHeldGpusAnnotation), HasSubstr("GPU-0"));
  Change("p", R"({"metadata":{"annotations":{"sharing.ai.centauruscloud.io/enforcement":"Hard"}}})");
  Play(seconds(5));
  EXPECT_EQ(Annotation("p", api::kEnforcementAnnotation), "None");
  EXPECT_EQ(Annotation("p", "mine"), "1") << "other keys are theirs";
}

TEST_F(PartWriterTest, APodSaysMpsIfEachOfItsContainersWasGivenItsPartSo) {
  AddPod("p");
  AddPod("half");
  Hold("p");
  Hold("half", 2);
  holders_.held.push_back({"a", "half", "d", {{"alnair/vgpu-memory", {"GPU-0_4"}}}});
  for (const char* one : {"p/c", "half/c"}) enforcer_.holders[one] = Enforcement::kMps;
  Play(seconds(5));
  EXPECT_EQ(Annotation("p", api::kEnforcementAnnotation), "MPS");
  EXPECT_EQ(Annotation("half", api::kEnforcementAnnotation), "None");
}

TEST_F(PartWriterTest, APodThatHasSaidNoneDoesNotSayMpsLaterWhateverTheRecordSays) {
  AddPod("p");
  Hold("p");
  Play(seconds(5));
  ASSERT_EQ(Annotation("p", api::kEnforcementAnnotation), "None");
  enforcer_.holders = {{"p/c", Enforcement::kMps}};  // By an agent that ran before one that knew nothing of it.
  Play(seconds(30));
  EXPECT_EQ(Annotation("p", api::kEnforcementAnnotation), "None");
}

TEST_F(PartWriterTest, MpsThatAUserWroteIsNotBelieved) {
  AddPod("p", true, R"({"sharing.ai.centauruscloud.io/enforcement":"MPS"})");
  Hold("p");
  Play(seconds(5));
  EXPECT_EQ(Annotation("p", api::kEnforcementAnnotation), "None");
}

TEST_F(PartWriterTest, APodThatAsksForNothingDoesNotSayThatItHasSomething) {
  AddPod("p", false, R"({"sharing.ai.centauruscloud.io/gpus":"{}","ai.centaurus.io/alnair-gpu-id":""})");
  Play(seconds(5));
  const auto live = server_.Get("pods", {"a", "p"});
  EXPECT_EQ(live->At({"metadata", "annotations", api::kHeldGpusAnnotation}), nullptr);
  EXPECT_EQ(live->At({"metadata", "annotations", kAlnairGpuIdAnnotation}), nullptr);
}

TEST_F(PartWriterTest, AKubeletThatStartsAgainAndKnowsNoPodForAMomentChangesNothing) {
  AddPod("p");
  Hold("p");
  Play(seconds(5));
  const std::vector<HeldDevices> held = std::exchange(holders_.held, {});
  Play(seconds(25));
  EXPECT_THAT(Annotation("p", api::kHeldGpusAnnotation), HasSubstr("GPU-0"));
  holders_.held = held;
  Play(seconds(30));
  EXPECT_EQ(door_.writes, 1);
  holders_.held.clear();
  Play(seconds(40));
  EXPECT_EQ(Annotation("p", api::kHeldGpusAnnotation), "") << "it lasts";
}

TEST_F(PartWriterTest, APodThatHasEndedKeepsWhatItHad) {
  AddPod("p");
  Hold("p");
  Play(seconds(5));
  Change("p", R"({"status":{"phase":"Succeeded"}})", "status");
  holders_.held.clear();
  Play(minutes(5));
  EXPECT_THAT(Annotation("p", api::kHeldGpusAnnotation), HasSubstr("GPU-0"));
  EXPECT_EQ(door_.writes, 1);
}

TEST_F(PartWriterTest, ANewPodOfTheSameNameIsNotAnnotatedForTheOldOne) {
  const std::string old = AddPod("p");
  Hold("p");
  bool is_new = false;
  door_.before = [&](const std::string&) {
    if (std::exchange(is_new, true)) return;
    kit::Must(server_.Delete("pods", {"a", "p"}, kit::FromText(R"({"gracePeriodSeconds":0})")));
    Json pod = kit::FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"p"},
        "spec":{"nodeName":"node-1","containers":[{"name":"c","image":"a"}]}})");
    kit::Must(server_.Create("pods", std::move(pod)));
    holders_.held.clear();
  };
  EXPECT_EQ(CountIn(Play(seconds(5)), "WARN"), 0) << "it is no failure";
  EXPECT_EQ(door_.writes, 1);
  EXPECT_NE(*server_.Get("pods", {"a", "p"})->At({"metadata", "uid"}), Json(old));
  EXPECT_EQ(Annotation("p", api::kHeldGpusAnnotation), "");
}

TEST_F(PartWriterTest, AtMostTenPodsAreWrittenInALook) {
  for (int i = 0; i < 25; ++i) {
    AddPod("p" + std::to_string(i));
    Hold("p" + std::to_string(i), 2 * i);
  }
  for (const int after : {10, 20, 25, 25}) {
    Play(seconds(5));
    EXPECT_EQ(door_.writes, after);
  }
}

TEST_F(PartWriterTest, AServerThatIsAwayIsAskedAgainLaterAndLater) {
  AddPod("p");
  Hold("p");
  door_.refuse = [](const std::string&) { return 503; };
  const std::string logged = Play(minutes(30));
  EXPECT_GE(door_.writes, 6);
  EXPECT_LE(door_.writes, 14);
  EXPECT_LE(CountIn(logged, "trying again"), door_.writes);
  EXPECT_GE(CountIn(logged, "trying again"), 1);
  door_.refuse = [](const std::string&) { return 0; };
  Play(minutes(7));
  EXPECT_THAT(Annotation("p", api::kHeldGpusAnnotation), HasSubstr("GPU-0"));
}

TEST_F(PartWriterTest, APodThatCannotBeWrittenDoesNotStopTheOthers) {
  for (int i = 0; i < 5; ++i) {
    AddPod("p" + std::to_string(i));
    Hold("p" + std::to_string(i), 2 * i);
  }
  door_.refuse = [](const std::string& target) { return target.find("/p2") != std::string::npos ? 422 : 0; };
  Play(minutes(1));
  for (const std::string pod : {"p0", "p1", "p3", "p4"}) {
    EXPECT_THAT(Annotation(pod, api::kHeldGpusAnnotation), HasSubstr("GPU-0")) << pod;
  }
  EXPECT_LE(door_.writes, 10) << "it is tried later and later";
}

TEST_F(PartWriterTest, WhatIsWatchedIsWhatThePodSaysOfItsMemoryAlsoWhileTheServerIsAway) {
  AddPod("p", true, R"({"sharing.ai.centauruscloud.io/memory-mib":"5000"})");
  holders_.held.push_back({"a", "p", "c", {{"ai.centauruscloud.io/gpu-milli", {"GPU-1_0", "GPU-1_1"}}}});
  door_.refuse = [](const std::string&) { return 503; };
  Play(minutes(30));
  const auto given = watch_.newest();
  ASSERT_TRUE(given);
  EXPECT_LE(clock_.Now() - given->at, seconds(5));
  ASSERT_EQ(given->parts.size(), 1U);
  EXPECT_EQ(given->parts[0].gpu, "GPU-1");
  EXPECT_EQ(given->parts[0].milli, 2);
  EXPECT_EQ(given->parts[0].memory_mib, 5000);
}

TEST_F(PartWriterTest, TheKubeletIsAskedOnceInALook) {
  AddPod("p");
  Hold("p");
  const int before = holders_.lists;
  Play(minutes(1));
  EXPECT_EQ(holders_.lists - before, 12);
}

TEST_F(PartWriterTest, ALackingRightIsToldOnce) {
  AddPod("p");
  Hold("p");
  door_.refuse = [](const std::string&) { return 403; };
  EXPECT_EQ(CountIn(Play(minutes(60)), "no right to tell them"), 1);
}

TEST_F(PartWriterTest, WithoutPodResourcesNothingIsWritten) {
  AddPod("p", false, R"({"sharing.ai.centauruscloud.io/gpus":"{}"})");
  holders_.is_available = false;
  EXPECT_GE(CountIn(Play(minutes(5)), "pods cannot be told which part of a GPU they have"), 1);
  EXPECT_EQ(door_.writes, 0);
}

TEST_F(PartWriterTest, ARunningWriterWritesWhatIsThere) {
  AddPod("p");
  PartWriter writer(client_, pods_, holders_, plugins_, system_, quiet_);
  Hold("p");
  const kube::Thread running = system_.Spawn([&](const std::stop_token& stop) { writer.Run(stop); });
  writer.Wake();
  const kube::TimePoint until = system_.Now() + seconds(20);
  while (Annotation("p", api::kEnforcementAnnotation).empty()) ASSERT_LT(system_.Now(), until);
  EXPECT_THAT(Annotation("p", api::kHeldGpusAnnotation), HasSubstr("GPU-0"));
}

}  // namespace
}  // namespace grus
