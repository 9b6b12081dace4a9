// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/node_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "nodeagent/hardware_labels.h"
#include "nodeagent/nvml.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/objects.h"
#include "tests/nodeagent/fake_driver.h"
#include "tests/nodeagent/fake_proc.h"

namespace grus {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class NoPodNames final : public PodNames {
 public:
  std::optional<PodName> Find(const PodOfProcess&) const override { return std::nullopt; }
};

// The API server, with a door that a test closes.
class Door final : public kube::Transport {
 public:
  explicit Door(kube::Transport& server) : server_(server) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (request.target.find("/nodes/") != std::string::npos) ++count[request.method];
    if (const int status = refuse(request.method); status != 0) {
      return kube::HttpResponse{status, {}, R"({"kind":"Status","message":"not through this door"})"};
    }
    return server_.Send(request, std::move(stop));
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return server_.Open(request, std::move(stop));
  }

  std::function<int(const std::string& method)> refuse = [](const std::string&) { return 0; };  // The HTTP status.
  std::map<std::string, int> count;  // Requests about nodes, by method.

 private:
  kube::Transport& server_;
};

std::string Gpu(const std::string& uuid, const std::string& more = "", const std::string& model = "H100") {
  return "gpu uuid=" + uuid + " model=" + model + " util=50 memutil=10 used=1073741824 total=85899345920 pciegen=5 " +
         "pcielanes=16 " + more + "\n";
}
const std::string kDriver = "driver version=580.95.05\n";
const std::string kTwo = kDriver + Gpu("GPU-a") + Gpu("GPU-b");

class NodeWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Create("nodes", kit::MakeNode("node-1", 2)).ok());
    StartAgain();
  }
  // A new agent.
  void StartAgain() {
    writer_.reset();
    faults_.emplace(GpuFaultsOptions{}, log_);
    probe_.emplace(library_, owners_, *faults_, clock_, log_, [] { return ProcessOwners::Ticks{1000}; });
  }
  NodeWriter& writer() {
    const NodeWriterOptions options{"node-1", alnair_, more_};
    if (!writer_) writer_.emplace(client_, *probe_, *events_, options, clock_, log_);
    return *writer_;
  }
  // So many seconds in which the driver says this; all that is logged.
  std::string Play(const std::string& script, kube::Duration time) {
    driver_.Play(script);
    ::testing::internal::CaptureStderr();
    for (kube::Duration passed = {}; passed < time; passed += seconds(5)) {
      clock_.Advance(seconds(5));
      probe_->LookOnce();
      writer().LookOnce();
    }
    return ::testing::internal::GetCapturedStderr();
  }
  int CountIn(const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  std::string Text(const char* field, const std::string& key) const {
    const auto node = server_.Get("nodes", {"", "node-1"});
    const Json* const value = node->At({"metadata", field, key});
    return value == nullptr ? std::string() : *value->AsString();
  }
  std::string Label(const std::string& key) const { return Text("labels", "nvidia.com/" + key); }
  std::string Annotation(const std::string& key) const { return Text("annotations", key); }
  // A change by somebody else: a merge patch.
  void Change(const std::string& patch, const std::string& subresource = "") {
    Json node = *server_.Get("nodes", {"", "node-1"});
    MergePatch(node, *kube::ParseJson(patch));
    ASSERT_TRUE(server_.Update("nodes", std::move(node), subresource).ok());
  }
  void Offer(int gpus) {
    Change(R"({"status":{"allocatable":{"nvidia.com/gpu":")" + std::to_string(gpus) + R"("}}})", "status");
  }
  // All events of the node so far; the last thing that a test does.
  std::vector<std::string> Reasons() {
    events_.reset();
    std::vector<std::string> reasons;
    for (const auto& event : server_.List("events.events.k8s.io")) {
      EXPECT_EQ(*event->At({"regarding", "kind"}), Json("Node"));
      EXPECT_EQ(*event->At({"regarding", "name"}), Json("node-1"));
      EXPECT_EQ(event->Find("series"), nullptr) << "told once";
      reasons.push_back(*event->Find("reason")->AsString());
    }
    return reasons;
  }
  std::string Metrics() {
    kube::Registry registry;
    writer().AddMetrics(registry);
    return registry.Text();
  }

  testing::FakeDriver driver_;
  testing::FakeProc proc_;
  NoPodNames names_;
  kube::testing::ManualClock clock_;
  const kube::SystemClock system_;  // For what waits.
  const kube::Log log_;
  NvmlLibrary library_{driver_.path()};
  ProcessOwners owners_{proc_.path(), names_};
  std::optional<GpuFaults> faults_;
  std::optional<GpuProbe> probe_;
  kube::testing::FakeApiServer server_{system_};
  Door door_{server_};
  kube::Client client_{door_, nullptr, clock_}, events_client_{server_, nullptr, system_};
  std::unique_ptr<kube::EventRecorder> events_ = std::make_unique<kube::EventRecorder>(
      events_client_, system_, log_, kube::EventRecorderOptions{"grus-node-agent", "node-1"});
  bool alnair_ = false;  // Before the first Play().
  std::function<std::map<std::string, std::string>()> more_;
  std::optional<NodeWriter> writer_;
};

TEST_F(NodeWriterTest, LabelsItsNodeAndThenRests) {
  Play(kTwo, minutes(30));

  EXPECT_EQ(Label("gpu.product"), "H100");
  EXPECT_EQ(Label("gpu.count"), "2");
  EXPECT_EQ(Label("gpu.memory"), "81920");
  EXPECT_EQ(Label("cuda.driver-version.full"), "580.95.05");
  EXPECT_EQ(Text("labels", "kubernetes.io/hostname"), "node-1") << "the others are as they were";
  EXPECT_EQ(door_.count["PATCH"], 1);
  EXPECT_LE(door_.count["GET"], 7) << "every five minutes";
  EXPECT_THAT(Reasons(), IsEmpty());
}

TEST_F(NodeWriterTest, ASwappedGpuIsCorrectedAndALostOneIsNot) {
  Play(kTwo, minutes(1));
  Play(kDriver + Gpu("GPU-a") + Gpu("GPU-b", "error=15"), minutes(10));
  EXPECT_EQ(Label("gpu.count"), "2");
  EXPECT_EQ(Label("gpu.product"), "H100");
  Play(kDriver + Gpu("GPU-a") + "driver init=9\n", minutes(10));
  EXPECT_EQ(Label("gpu.count"), "2") << "the driver is away";
  EXPECT_EQ(door_.count["PATCH"], 1);

  Play(kDriver + Gpu("GPU-a", "", "A100") + Gpu("GPU-c", "", "A100"), minutes(10));
  EXPECT_EQ(Label("gpu.product"), "A100");
  EXPECT_EQ(Label("gpu.count"), "2");
  EXPECT_EQ(door_.count["PATCH"], 2);
}

TEST_F(NodeWriterTest, AnAgentThatStartsWhileAGpuIsLostKeepsTheLabels) {
  Play(kTwo, minutes(1));
  StartAgain();
  Play(kDriver + Gpu("GPU-a") + Gpu("GPU-b", "error=15"), minutes(20));

  EXPECT_EQ(Label("gpu.count"), "2");
  EXPECT_EQ(door_.count["PATCH"], 1);
  EXPECT_THAT(Reasons(), UnorderedElementsAre("GpuSick", "GpuCountDiffers"));
}

TEST_F(NodeWriterTest, AnAgentThatStartsWithoutADriverKeepsTheLabels) {
  Play(kTwo, minutes(1));
  StartAgain();
  Play("driver init=9\n", minutes(20));

  EXPECT_EQ(Label("gpu.count"), "2");
  EXPECT_EQ(door_.count["PATCH"], 1);
  EXPECT_THAT(Reasons(), ElementsAre("GpuCountDiffers"));
}

TEST_F(NodeWriterTest, ALookThatIsOldIsNotWritten) {
  driver_.Play(kTwo);
  writer().LookOnce();
  probe_->LookOnce();
  clock_.Advance(minutes(1));
  writer().LookOnce();
  EXPECT_THAT(door_.count, IsEmpty()) << "the driver hangs";
  probe_->LookOnce();
  writer().LookOnce();
  EXPECT_EQ(Label("gpu.count"), "2");
}

TEST_F(NodeWriterTest, ANodeThatHasNoGpusAnyMoreLosesTheLabels) {
  Play(kTwo, minutes(1));
  StartAgain();
  Play(kDriver, minutes(20));

  EXPECT_EQ(Label("gpu.count"), "");
  EXPECT_EQ(Annotation(kGpuLabelsAnnotation), "");
}

TEST_F(NodeWriterTest, AToolThatLabelsTheNodeIsLeftAlone) {
  Change(R"({"metadata":{"labels":{"nvidia.com/gpu.product":"H100-SHARED"}}})");

  const std::string logged = Play(kTwo, minutes(30));

  EXPECT_EQ(Label("gpu.product"), "H100-SHARED");
  EXPECT_EQ(Label("gpu.count"), "");
  EXPECT_EQ(door_.count["PATCH"], 0);
  EXPECT_EQ(CountIn(logged, "another tool labels this node"), 1) << logged;
}

TEST_F(NodeWriterTest, AToolThatComesLaterGetsTheLabels) {
  Play(kTwo, minutes(1));
  Change(R"({"metadata":{"labels":{"nvidia.com/gpu.product":"H100-SHARED","nvidia.com/gpu.family":"hopper"}}})");
  Play(kTwo, minutes(10));
  EXPECT_EQ(Annotation(kGpuLabelsAnnotation), "");
  Change(R"({"metadata":{"labels":{"nvidia.com/gpu.family":null,"nvidia.com/gpu.count":"9"}}})");
  Play(kTwo, minutes(10));

  EXPECT_EQ(Label("gpu.product"), "H100-SHARED");
  EXPECT_EQ(Label("gpu.count"), "9") << "not even what grus wrote before is corrected";
  EXPECT_EQ(door_.count["PATCH"], 2);
}

TEST_F(NodeWriterTest, WhatAnotherToolWritesBetweenReadAndWriteIsNotOverwritten) {
  bool has_come = false;
  door_.refuse = [&](const std::string& method) {
    if (method == "PATCH" && !std::exchange(has_come, true)) {
      Change(R"({"metadata":{"labels":{"nvidia.com/gpu.product":"H100-SHARED"}}})");
    }
    return 0;
  };
  Play(kTwo, minutes(10));

  ASSERT_TRUE(has_come);
  EXPECT_EQ(Label("gpu.product"), "H100-SHARED");
  EXPECT_EQ(Label("gpu.count"), "");
}

TEST_F(NodeWriterTest, AFailedWriteIsTriedAgainLaterAndLater) {
  door_.refuse = [](const std::string& method) { return method == "PATCH" ? 500 : 0; };
  const std::string logged = Play(kTwo, minutes(60));

  EXPECT_GE(door_.count["PATCH"], 6);
  EXPECT_LE(door_.count["PATCH"], 12);
  EXPECT_LE(CountIn(logged, "this node cannot be labelled, trying again"), 12) << logged;
  EXPECT_GE(CountIn(logged, "this node cannot be labelled, trying again"), 1);
  door_.refuse = [](const std::string&) { return 0; };
  Play(kTwo, minutes(13));
  EXPECT_EQ(Label("gpu.count"), "2");
}

TEST_F(NodeWriterTest, AnApiServerThatIsAwayIsAskedLaterAndLater) {
  door_.refuse = [](const std::string&) { return 500; };
  Play(kTwo, minutes(60));
  EXPECT_GE(door_.count["GET"], 6);
  EXPECT_LE(door_.count["GET"], 12);
  door_.refuse = [](const std::string&) { return 0; };
  Play(kTwo, minutes(13));
  EXPECT_EQ(Label("gpu.count"), "2");
}

TEST_F(NodeWriterTest, ARightThatItLacksIsToldOnceAndTheMetricGoesOn) {
  for (const char* verb : {"GET", "PATCH"}) {
    writer_.reset();
    door_.refuse = [&](const std::string& method) { return method == verb ? 403 : 0; };
    const std::string logged = Play(kTwo + "xid gpu=0 code=48 id=" + verb + "\n", minutes(120));
    EXPECT_EQ(CountIn(logged, "may not label its node"), 1) << logged;
    EXPECT_EQ(CountIn(logged, "trying again"), 0) << logged;
    EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 1\n"));
  }
}

TEST_F(NodeWriterTest, ALostGpuIsToldOnceAndAgainWhenItIsLostAgain) {
  const std::string lost = kDriver + Gpu("GPU-a") + Gpu("GPU-b", "error=15");
  Play(kTwo, minutes(1));
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 0\n"));
  Offer(1);
  std::string logged = Play(lost, minutes(20));
  EXPECT_EQ(CountIn(logged, "GpuSick"), 1) << logged;
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 1\n"));
  Offer(2);
  logged = Play(kTwo, minutes(20));
  EXPECT_EQ(CountIn(logged, "a problem of this node's GPUs is over"), 1) << logged;
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 0\n"));
  EXPECT_EQ(CountIn(Play(lost, minutes(1)), "GpuSick"), 1);
}

TEST_F(NodeWriterTest, XidsOfApplicationsMakeNoGpuSick) {
  std::string script = kTwo;
  for (const char* code : {"13", "31", "43", "45", "68", "109"}) {
    script += "xid gpu=0 code=" + std::string(code) + " id=" + code + "\n";
  }
  Play(script, minutes(5));
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 0\n"));

  // One that comes later does not hide the one that matters.
  Play(script + "xid gpu=1 code=48 id=x\nxid gpu=1 code=31 id=y\n", minutes(20));
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 1\n"));
  EXPECT_THAT(Reasons(), ElementsAre("GpuSick"));
}

TEST_F(NodeWriterTest, MixedModelsAreToldOnceAndHaveNoProduct) {
  Play(kDriver + Gpu("GPU-a") + Gpu("GPU-b", "", "A100"), minutes(30));
  EXPECT_EQ(Label("gpu.product"), "");
  EXPECT_EQ(Label("gpu.count"), "2");
  EXPECT_THAT(Reasons(), ElementsAre("GpuModelsMixed"));
}

TEST_F(NodeWriterTest, ACountThatDiffersIsToldOnceWhenItLasts) {
  Offer(0);
  Play(kTwo, minutes(1));
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuCountDiffers\"} 0\n"))
      << "the device plugin may be starting";
  Offer(2);
  Play(kTwo, minutes(10));
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuCountDiffers\"} 0\n"));

  Offer(1);
  Play(kTwo, minutes(8));
  EXPECT_THAT(Metrics(), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuCountDiffers\"} 1\n"));
  Play(kTwo, minutes(30));
  EXPECT_THAT(Reasons(), ElementsAre("GpuCountDiffers"));
}

TEST_F(NodeWriterTest, WithoutTheSwitchThereAreNoAnnotationsOfTheOriginal) {
  Play(kTwo, minutes(5));
  const auto node = server_.Get("nodes", {"", "node-1"});
  EXPECT_THAT(kube::ToText(*node), Not(HasSubstr("ai.centaurus.io")));
}

TEST_F(NodeWriterTest, FurtherAnnotationsAreKeptTrue) {
  Change(R"({"metadata":{"annotations":{"old":"1","others":"2"}}})");
  std::string text = "first";
  more_ = [&] { return std::map<std::string, std::string>{{"mine", text}, {"old", ""}}; };
  Play(kTwo, minutes(1));
  EXPECT_EQ(Annotation("mine"), "first");
  EXPECT_EQ(Annotation("old"), "");
  EXPECT_EQ(Annotation("others"), "2");
  Change(R"({"metadata":{"annotations":{"mine":"by somebody"}}})");
  Play(kTwo, minutes(10));
  EXPECT_EQ(Annotation("mine"), "first");
  text = "second";
  Play(kTwo, minutes(2));
  EXPECT_EQ(Annotation("mine"), "second");
  EXPECT_EQ(door_.count["PATCH"], 3);
}

class AlnairAnnotationsTest : public NodeWriterTest {
 protected:
  AlnairAnnotationsTest() { alnair_ = true; }
  std::string Usage(int gpu) const { return Annotation("ai.centaurus.io/gpu-" + std::to_string(gpu)); }
};

TEST_F(AlnairAnnotationsTest, StandOnTheNode) {
  Play(kTwo + "process gpu=0 pid=7 memory=1048576\n", seconds(5));
  EXPECT_EQ(Annotation("ai.centaurus.io/gpu-static"),
            "{'count': '2', 'model': 'H100', 'mem_size': '80GB', 'pcie_gen_width': '5x16'}");
  EXPECT_EQ(Usage(1),
            "{'mem_used': '1GB', 'mem_free': '79GB', 'process_cnt': 0, 'max_mem_util': 10.0, 'max_gpu_util': 50.0}");
  EXPECT_EQ(Label("gpu.count"), "2") << "in the same write";
  EXPECT_EQ(door_.count["PATCH"], 1);
}

TEST_F(AlnairAnnotationsTest, AreWrittenAgainWhenAValueMovedByATenthAtMostOnceAMinute) {
  const auto busy = [](int percent) {
    return kDriver + "gpu uuid=GPU-a model=H100 util=" + std::to_string(percent) +
           " memutil=10 used=0 total=85899345920 pciegen=5 pcielanes=16\n";
  };
  Play(busy(50), minutes(10));
  EXPECT_EQ(door_.count["PATCH"], 1);
  for (const int percent : {51, 55, 59}) Play(busy(percent), minutes(3));
  EXPECT_EQ(door_.count["PATCH"], 1) << "less than a tenth";
  Play(busy(60), seconds(20));
  EXPECT_EQ(door_.count["PATCH"], 2);
  EXPECT_THAT(Usage(0), HasSubstr("'max_gpu_util': 60.0"));
  for (const int percent : {72, 84, 96}) Play(busy(percent), seconds(10));
  EXPECT_EQ(door_.count["PATCH"], 2) << "within the minute";
  Play(busy(96), minutes(1));
  EXPECT_EQ(door_.count["PATCH"], 3);
  EXPECT_THAT(Usage(0), HasSubstr("'max_gpu_util': 96.0"));
}

TEST_F(AlnairAnnotationsTest, WhatOthersChangeOnTheNodeDelaysNoWrite) {
  Play(kTwo, minutes(2));
  Change(R"({"metadata":{"annotations":{"heartbeat":"1"}}})");
  proc_.Put(7, 1, "0::/user.slice\n");
  EXPECT_THAT(Play(kTwo + "process gpu=0 pid=7\n", seconds(5)), Not(HasSubstr("trying again")));
  EXPECT_EQ(door_.count["PATCH"], 2);
  EXPECT_THAT(Usage(0), HasSubstr("'process_cnt': 1"));
}

TEST_F(AlnairAnnotationsTest, OfALostGpuSayNothing) {
  Play(kTwo, minutes(1));
  Play(kDriver + Gpu("GPU-a") + Gpu("GPU-b", "error=15"), minutes(5));
  EXPECT_NE(Usage(0), "");
  EXPECT_EQ(Usage(1), "");
  EXPECT_THAT(Annotation("ai.centaurus.io/gpu-static"), HasSubstr("{'count': '2', "));
  Play(kTwo, minutes(10));
  EXPECT_NE(Usage(1), "") << "it is back";
  Play(kDriver + Gpu("GPU-a", "error=15") + Gpu("GPU-b"), minutes(5));
  EXPECT_THAT(Annotation("ai.centaurus.io/gpu-static"), HasSubstr("{'count': '2', ")) << "also of the first one";
}

TEST_F(AlnairAnnotationsTest, OfAGpuThatWasTakenOutAreTakenAway) {
  Change(R"({"metadata":{"annotations":{"ai.centaurus.io/gpu-7":"{}","ai.centaurus.io/gpu-other":"mine"}}})");
  Play(kTwo, minutes(1));
  EXPECT_EQ(Usage(7), "");
  EXPECT_EQ(Annotation("ai.centaurus.io/gpu-other"), "mine");
}

}  // namespace
}  // namespace grus
