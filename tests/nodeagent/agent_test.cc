// SPDX-License-Identifier: Apache-2.0
// The program as a whole: started, scraped and stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/objects.h"
#include "tests/nodeagent/agent_run.h"

namespace grus {
namespace {

using testing::AgentRun;
using testing::ContainerId;
using ::testing::HasSubstr;

constexpr char kGpu[] = "driver version=580.95.05\ngpu uuid=GPU-a model=H100 util=37 memutil=12 used=1000 total=4096\n";

TEST(NodeAgent, ShowsTheProcessesOfPodsOverHttp) {
  AgentRun agent;
  agent.Play(std::string(kGpu) + "process gpu=0 pid=7 memory=100 sm=40 mem=11\n");
  agent.proc().PutInPod(7, 1, agent.AddPod("bert-0", ContainerId('1')), ContainerId('1'));
  ASSERT_TRUE(agent.Start({"--alnair-names"})) << agent.process().output();

  EXPECT_TRUE(agent.AwaitMetric(
      "\ngrus_gpu_process_sm_ratio{gpu=\"0\",uuid=\"GPU-a\",namespace=\"default\",pod=\"bert-0\",container=\"main\","
      "pid=\"7\"} 0.4\n"))
      << agent.Get("/metrics");
  const std::string text = agent.Get("/metrics");
  EXPECT_THAT(text, HasSubstr("\ngrus_gpu_utilization_ratio{gpu=\"0\",uuid=\"GPU-a\",model=\"H100\"} 0.37\n"));
  EXPECT_THAT(text, HasSubstr("\nalnair_gpu_util{pid=\"7\",gpu_uuid=\"GPU-a\",gpu_idx=\"0\",pod_name=\"bert-0\","
                              "nodeName=\"node-1\"} 40\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_EQ(agent.Get("/healthz"), "ok\n");
}

TEST(NodeAgent, LabelsItsNodeAndAnnotatesItByItsSwitch) {
  AgentRun agent;
  ASSERT_TRUE(agent.server().Create("nodes", kit::MakeNode("node-1", 1)).ok());
  agent.Play("driver version=580.95.05\ngpu uuid=GPU-a model=H100 used=0 total=85899345920 pciegen=5 pcielanes=16\n");
  ASSERT_TRUE(agent.Start({"--alnair-annotations"})) << agent.process().output();

  const std::string node = agent.AwaitNode("nvidia.com/gpu.product");
  EXPECT_THAT(node, HasSubstr("\"nvidia.com/gpu.product\":\"H100\""));
  EXPECT_THAT(node, HasSubstr("ai.centaurus.io/gpu-static"));
  EXPECT_THAT(agent.Get("/metrics"), HasSubstr("\ngrus_node_gpu_problems{reason=\"GpuSick\"} 0\n"));
}

TEST(NodeAgent, EndsWithItsSignal) {
  AgentRun agent;
  agent.Play(kGpu);
  ASSERT_TRUE(agent.Start()) << agent.process().output();

  EXPECT_EQ(agent.process().Terminate(), 0) << agent.process().output();
  EXPECT_THAT(agent.process().output(), HasSubstr("stopped"));
}

TEST(NodeAgent, RunsOnANodeWithoutGpus) {
  AgentRun agent;
  ASSERT_TRUE(agent.Start({}, "/")) << agent.process().output();

  EXPECT_TRUE(agent.process().AwaitOutput("no GPU driver"));
  EXPECT_EQ(agent.Get("/healthz"), "ok\n");
  EXPECT_THAT(agent.Get("/metrics"), HasSubstr("# TYPE grus_gpu_up gauge\n"));
  EXPECT_EQ(agent.process().Terminate(), 0);
}

TEST(NodeAgent, SaysWhatIsWrongWithItsCommandLine) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "grus-node-agent";
  const kit::CommandResult result = kit::RunCommand(program.string() + " 2>&1");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("--node-name \"\": expected"));
}

}  // namespace
}  // namespace grus
