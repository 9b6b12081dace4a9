// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/agent/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace grus {
namespace {

using ::testing::HasSubstr;

kube::Result<AgentOptions> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "grus-node-agent");
  return ParseAgentOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(AgentOptions, ANodeNameIsEnough) {
  const auto options = Parse({"--node-name", "gpu-1.example.com"});

  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->node_name, "gpu-1.example.com");
  EXPECT_EQ(options->metrics_address, ":8080");
  EXPECT_EQ(options->proc, "/proc");
  EXPECT_FALSE(options->alnair_names);
  EXPECT_FALSE(options->alnair_annotations);
  EXPECT_FALSE(options->shares_gpus);
  EXPECT_EQ(options->share_reserve_mib, 500);
  EXPECT_EQ(options->cuda_library, "/usr/local/lib/grus/libgrus-cuda.so");
  EXPECT_EQ(options->cuda_folder, "/var/lib/grus/cuda");
  EXPECT_EQ(options->cuda_shares, "/run/grus/cuda");
  EXPECT_EQ(options->cuda_context_mib, 0);
  EXPECT_EQ(Parse({"--node-name=a", "--cuda-context-mebibytes=300"})->cuda_context_mib, 300);
}

TEST(AgentOptions, ASwitchMayBeSaidAsComponentsOfKubernetesSayIt) {
  EXPECT_TRUE(Parse({"--node-name=a", "--alnair-names"})->alnair_names);
  EXPECT_FALSE(Parse({"--node-name=a", "--alnair-names=false"})->alnair_names);
  EXPECT_TRUE(Parse({"--node-name=a", "--alnair-annotations"})->alnair_annotations);
  EXPECT_TRUE(Parse({"--node-name=a", "--share-gpus"})->shares_gpus);
}

TEST(AgentOptions, AWrongValueNamesTheOptionTheValueAndWhatIsAllowed) {
  struct Case {
    std::vector<const char*> arguments;
    const char* want;
  };
  const Case cases[] = {
      {{}, "--node-name \"\": expected the name of this node"},
      {{"--node-name", "a,b=c"}, "--node-name \"a,b=c\": expected the name of this node"},
      {{"--node-name=a", "--proc", "proc"}, "--proc \"proc\": expected an absolute path"},
      {{"--node-name=a", "--mps-control=mps"}, "--mps-control \"mps\": expected an absolute path"},
      {{"--node-name=a", "--mps-folder=mps"}, "--mps-folder \"mps\": expected an absolute path"},
      {{"--node-name=a", "--mps-shm=shm"}, "--mps-shm \"shm\": expected an absolute path"},
      {{"--node-name=a", "--cuda-library=lib.so"}, "--cuda-library \"lib.so\": expected an absolute path, or nothing"},
      {{"--node-name=a", "--cuda-folder=cuda"}, "--cuda-folder \"cuda\": expected an absolute path"},
      {{"--node-name=a", "--cuda-shares=run"}, "--cuda-shares \"run\": expected an absolute path"},
      {{"--node-name=a", "--cuda-context-mebibytes=-1"}, "--cuda-context-mebibytes \"-1\": expected MiB"},
      {{"--node-name=a", "--share-reserve-mib=-1"}, "--share-reserve-mib \"-1\": expected MiB of one GPU"},
      {{"--node-name=a", "--metrics-bind-address", ""}, "--metrics-bind-address"},
      {{"--no-such-option"}, "see grus-node-agent --help"},
      {{"stray"}, "see grus-node-agent --help"},
  };
  for (const Case& c : cases) {
    const auto options = Parse(c.arguments);
    ASSERT_FALSE(options.ok()) << c.want;
    EXPECT_EQ(options.error().code(), kube::ErrorCode::kInvalidArgument);
    EXPECT_THAT(options.error().message(), HasSubstr(c.want));
  }
}

TEST(AgentOptions, NoneOfItsFoldersMayBeInAnotherAsItRemovesWhatItFindsThere) {
  struct Case {
    std::vector<const char*> arguments;
    const char* want;
  };
  const Case cases[] = {
      {{"--cuda-folder=/a", "--cuda-shares=/a"},
       R"(--cuda-folder "/a": expected a folder that is not in --cuda-shares "/a")"},
      {{"--cuda-shares=/run/grus/mps/"}, R"(--cuda-shares "/run/grus/mps/": expected a folder that is not in --mps-)"},
      {{"--cuda-folder=/a/b", "--cuda-shares=/a"},
       R"(--cuda-folder "/a/b": expected a folder that is not in --cuda-s)"},
      {{"--cuda-shares=/a/./c//../b", "--mps-folder=/a"}, "a folder that is not in --mps-folder \"/a\""},
      {{"--mps-folder=/a/b", "--cuda-folder=/"}, "a folder that is not in --cuda-folder \"/\""},
      {{"--cuda-shares=/run/grus"}, "a folder that is not in --cuda-shares \"/run/grus\""},
  };
  for (Case c : cases) {
    c.arguments.push_back("--node-name=a");
    const auto options = Parse(c.arguments);
    ASSERT_FALSE(options.ok()) << c.want;
    EXPECT_THAT(options.error().message(), HasSubstr(c.want));
  }
  EXPECT_TRUE(Parse({"--node-name=a", "--cuda-folder=/a/b", "--cuda-shares=/a/bc", "--mps-folder=/a/b.d"}));
}

TEST(AgentOptions, HelpNamesEachOption) {
  const std::string text = Parse({"--help"})->text_to_print;
  for (const char* name :
       {"--node-name", "--metrics-bind-address", "--alnair-names", "--alnair-annotations", "--proc", "--kubeconfig"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

}  // namespace
}  // namespace grus
