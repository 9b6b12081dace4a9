// SPDX-License-Identifier: Apache-2.0
// The program as a whole: started, scraped and stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
