// SPDX-License-Identifier: Apache-2.0
// Trials that are several pods: when a template may be on several nodes, what its pods are, and what is read of them.
#include "controllers/trial/trial_peers.h"

#include <gmock/gmock.h>

#include "clientlib/model/core_v1.h"
#include "controllers/trial/trial_children.h"
#include "tests/controllers/trial/trial_builder.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

Json Template(const std::string& command) {
  return *kube::ParseJson(R"({"spec":{"containers":[{"name":"train","image":"t","command":)" + command + "}]}}");
}

const Json kTorchrun = Template(R"(["torchrun","train.py"])");
const TrialStart kOnTwo{"tune-g16-x", {"A100", 16, 0, 0, 2}, 300, 17, 2};

std::map<std::string, std::string> VariablesOf(const Json& pod) {
  std::map<std::string, std::string> variables;
  for (const Json& one : *pod.At({"spec", "containers"})->AsArray()->front().Find("env")->AsArray()) {
    EXPECT_TRUE(variables.emplace(*one.Find("name")->AsString(), *one.Find("value")->AsString()).second) << "twice";
  }
  return variables;
}

kube::Pod Read(Json made, const std::string& status, const std::string& node = "n1") {
  made["metadata"]["uid"] = *made.At({"metadata", "name"})->AsString() + "-uid";
  if (!node.empty()) made["spec"]["nodeName"] = node;
  made["status"] = *kube::ParseJson(status);
  const auto pod = kube::Decode<kube::Pod>(kube::ToText(made));
  EXPECT_TRUE(pod);
  return **pod;
}

TEST(PodWorkload, MayBeOnSeveralNodesIfItsCommandLeavesTheirNumberOpenOrTheSpaceAsks) {
  struct Case {
    const char* command;
    bool is_on_one_node;
    const char* fixed;  // What the space may not contradict.
  };
  for (const Case& c :
       {Case{R"(["torchrun","train.py"])", false, ""},
        Case{R"(["torchrun","--nproc-per-node=gpu","train.py"])", false, ""},
        Case{R"(["python","-m","torch.distributed.run","train.py"])", false, ""},
        Case{R"(["sh","-c","exec torchrun --nnodes=$NNODES train.py"])", false, ""},
        Case{R"_(["torchrun","--nnodes","$(NNODES)","train.py"])_", false, ""},
        Case{R"(["python","train.py"])", true, ""}, Case{R"(["python","/data/not_torchrun/train.py"])", true, ""},
        Case{R"(["/opt/conda/bin/torchrun","train.py"])", false, ""},
        Case{R"(["torchrun","--rdzv-endpoint=etcd:2379","train.py"])", false, ""},
        Case{R"(["torchrun","--rdzv-endpoint=localhost:0","train.py"])", true, "--rdzv-endpoint=localhost:0"},
        Case{R"(["torchrun","--node-rank","0","train.py"])", true, "--node-rank=0"},
        Case{R"(["torchrun","--standalone","train.py"])", true, "--standalone"},
        Case{R"(["torchrun","--nnodes","1","train.py"])", true, "--nnodes=1"},
        Case{R"(["sh","-c","torchrun --nnodes=\"2\" train.py"])", true, "--nnodes=2"}}) {
    const auto unasked = PodWorkload(Template(c.command), {});
    ASSERT_TRUE(unasked) << c.command;
    EXPECT_EQ(unasked->is_on_one_node, c.is_on_one_node) << c.command;
    api::TrialSpace space;
    space.node_counts = {1, 2};
    const auto asked = PodWorkload(Template(c.command), space);
    EXPECT_EQ(static_cast<bool>(asked), *c.fixed == 0) << c.command;
    if (asked) {
      EXPECT_FALSE(asked->is_on_one_node) << c.command;
    } else {
      EXPECT_THAT(asked.error().message(), HasSubstr(std::string("says ") + c.fixed + " in its command"));
    }
  }
}

TEST(MakeTrialPeers, AllPodsAreEqualButForTheirRank) {
  const Json first = MakePodTrial(testing::TestTrialJob(), kTorchrun, kOnTwo, true);
  const std::vector<Json> peers = MakeTrialPeers(testing::TestTrialJob(), kTorchrun, kOnTwo, true, "first-uid");

  ASSERT_EQ(peers.size(), 1U);
  Json peer = peers[0];
  EXPECT_EQ(*peer.At({"metadata", "name"}), Json("tune-g16-x-1"));
  const kube::Pod read = Read(peer, "{}");
  EXPECT_EQ(read.metadata.Controller()->uid, "first-uid");
  EXPECT_EQ(read.metadata.Label(api::kPodGroupLabel), "tune-g16-x");
  EXPECT_EQ(ReadPeerOf(read.metadata)->trial.name, "tune-g16-x");
  EXPECT_EQ(ReadPeerOf(read.metadata)->trial_job.name, "tune");
  EXPECT_EQ(ReadPeerOf(Read(first, "{}").metadata).has_value(), false);
  std::map<std::string, std::string> there = VariablesOf(first), here = VariablesOf(peer);
  for (const char* name : {"NODE_RANK", "PET_NODE_RANK"}) {
    EXPECT_EQ(there.at(name), "0");
    EXPECT_EQ(here.at(name), "1");
    there.erase(name);
    here.erase(name);
  }
  EXPECT_EQ(there, here);
  peer["metadata"] = *first.Find("metadata");
  peer["spec"]["hostname"] = "tune-g16-x";
  peer["spec"]["containers"] = *first.At({"spec", "containers"});
  EXPECT_EQ(peer, first);
}

TEST(MakeTrialPeers, GetWhatTorchrunReadsAndFindTheFirstByItsName) {
  const Json first = MakePodTrial(testing::TestTrialJob(), kTorchrun, kOnTwo, true);
  const Json service = MakeTrialService(testing::TestTrialJob(), kOnTwo, "first-uid");

  EXPECT_THAT(VariablesOf(first),
              IsSupersetOf(std::map<std::string, std::string>{{"PET_NNODES", "2"},
                                                              {"PET_NPROC_PER_NODE", "8"},
                                                              {"PET_MASTER_ADDR", "tune-g16-x.tune-g16-x"},
                                                              {"PET_MASTER_PORT", "29500"},
                                                              {"MASTER_ADDR", "tune-g16-x.tune-g16-x"},
                                                              {"WORLD_SIZE", "16"}}));
  EXPECT_EQ(*first.At({"spec", "hostname"}), Json("tune-g16-x"));
  EXPECT_EQ(*first.At({"spec", "subdomain"}), *service.At({"metadata", "name"}));
  EXPECT_EQ(*service.At({"spec", "clusterIP"}), Json("None"));
  EXPECT_EQ(*service.At({"spec", "selector", kTrialLabel}), *first.At({"metadata", "labels", kTrialLabel}));
}

TEST(MakeTrialPeers, AreKeptApartWhereTheTrialIsSpread) {
  TrialStart packed = kOnTwo;
  packed.config.min_nodes = 0;
  const Json together = MakePodTrial(testing::TestTrialJob(), kTorchrun, packed, true);

  EXPECT_EQ(together.At({"spec", "topologySpreadConstraints"}), nullptr);
  const Json apart = MakePodTrial(testing::TestTrialJob(), kTorchrun, kOnTwo, true);
  const Json* rules = apart.At({"spec", "topologySpreadConstraints"});
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(*rules->AsArray()->front().Find("maxSkew"), Json(1));
  EXPECT_EQ(*rules->AsArray()->front().At({"labelSelector", "matchLabels", kTrialLabel}), Json("tune-g16-x"));
}

TEST(MakeTrialPeers, ATrialOnOneNodeHasNoneAndTheSameVariables) {
  TrialStart alone = kOnTwo;
  alone.config = {"A100", 8, 0, 0};
  alone.pods = 1;

  const Json first = MakePodTrial(testing::TestTrialJob(), kTorchrun, alone, true);

  EXPECT_TRUE(MakeTrialPeers(testing::TestTrialJob(), kTorchrun, alone, true, "u").empty());
  EXPECT_EQ(VariablesOf(first).at("PET_NNODES"), "1");
  EXPECT_EQ(VariablesOf(first).at("MASTER_ADDR"), "localhost");
  EXPECT_EQ(first.At({"spec", "subdomain"}), nullptr);
  EXPECT_EQ(PodsOfTrial(Read(first, "{}")), 1);
}

TEST(MakeTrialPeers, ATemplateThatIsACopyOfATrialsPodIsNoTrialOfItsOwn) {
  Json copied = kTorchrun;
  kube::MergePatch(copied, *kube::ParseJson(R"({"metadata":{"annotations":{"ai.centauruscloud.io/trial-pods":"5",
      "ai.centauruscloud.io/trial-parked":"true","ai.centauruscloud.io/samples-per-second":"9","mine":"1"}}})"));
  TrialStart alone = kOnTwo;
  alone.pods = 1;
  const kube::Pod pod = Read(MakePodTrial(testing::TestTrialJob(), copied, alone, true), "{}");
  EXPECT_EQ(PodsOfTrial(pod), 1);
  EXPECT_EQ(pod.metadata.Annotation(kSuspendedAnnotation), "");
  EXPECT_EQ(pod.metadata.Annotation(kPushedSamplesAnnotation), "");
  EXPECT_EQ(pod.metadata.Annotation("mine"), "1");
}

TEST(MakeTrialPeers, TheUsersVariablesMayReferToOurs) {
  const Json own = *kube::ParseJson(
      R"_({"spec":{"containers":[{"name":"train","image":"t","env":[{"name":"N","value":"$(NNODES)"}]}]}})_");
  const Json first = MakePodTrial(testing::TestTrialJob(), own, kOnTwo, true);
  const Json::Array& env = *first.At({"spec", "containers"})->AsArray()->front().Find("env")->AsArray();
  EXPECT_EQ(*env.back().Find("name"), Json("N"));
}

TEST(MakeTrialPeers, OnTheNetworkOfTheHostTheyStillFindTheFirst) {
  Json host = kTorchrun;
  host["spec"]["hostNetwork"] = true;
  EXPECT_EQ(*MakePodTrial(testing::TestTrialJob(), host, kOnTwo, true).At({"spec", "dnsPolicy"}),
            Json("ClusterFirstWithHostNet"));
}

TEST(MakeTrialGroup, NeedsAllPodsOfTheTrial) {
  const kube::Pod first = Read(MakePodTrial(testing::TestTrialJob(), kTorchrun, kOnTwo, true), "{}");
  EXPECT_EQ(*MakeTrialGroup(first).At({"spec", "minMember"}), Json(2));
}

TEST(ReadPeer, WhatHappensToAPeerHappensToTheTrial) {
  constexpr char kRuns[] = R"({"phase":"Running"})";
  constexpr char kCrashed[] = R"({"phase":"Failed","containerStatuses":[{"name":"train","state":{"terminated":
      {"exitCode":3}}}]})";
  struct Case {
    const char *what, *first, *first_node, *peer;  // No peer: it is not there.
    bool has_node;
    std::string phase, message;
    bool lingers, lacks_peers;
  };
  const Case cases[] = {
      {"both run", kRuns, "n1", kRuns, true, "Running", "", false, false},
      {"the peer is done first", kRuns, "n1", R"({"phase":"Succeeded"})", true, "Running", "", false, false},
      {"the peer crashes", kRuns, "n1", kCrashed, true, "Failed", "its pod tune-g16-x-1 ended with exit code 3", true,
       false},
      {"it crashes, and its sidecar runs on", kRuns, "n1",
       R"({"phase":"Running","containerStatuses":[{"name":"train","state":{"terminated":{"exitCode":1}}}]})", true,
       "Failed", "its pod tune-g16-x-1 ended with exit code 1", true, false},
      {"its node is lost", kRuns, "n1", kRuns, false, "Failed", "its pod tune-g16-x-1 has lost its node", true, false},
      {"somebody deletes it", kRuns, "n1", nullptr, true, "Failed", "its pod tune-g16-x-1 is gone", true, false},
      {"it was never made", R"({"phase":"Pending"})", "", nullptr, true, "", "", false, true},
      {"the first is done, and it runs on", R"({"phase":"Succeeded"})", "n1", kRuns, true, "Succeeded", "", true,
       false},
      {"both are done", R"({"phase":"Succeeded"})", "n1", R"({"phase":"Succeeded"})", true, "Succeeded", "", false,
       false},
  };
  for (const Case& c : cases) {
    const kube::Pod first = Read(MakePodTrial(testing::TestTrialJob(), kTorchrun, kOnTwo, true), c.first, c.first_node);
    TrialChild child = ReadPodChild(first, nullptr, testing::TestTrialJob(), true);
    if (c.peer != nullptr) {
      const Json made = MakeTrialPeers(testing::TestTrialJob(), kTorchrun, kOnTwo, true, first.metadata.uid)[0];
      ReadPeer(Read(made, c.peer, "n2"), c.has_node, child);
    }
    CheckPeers(first, child);
    EXPECT_EQ(child.phase, c.phase) << c.what;
    EXPECT_EQ(child.message, c.message) << c.what;
    EXPECT_EQ(child.lingers, c.lingers) << c.what;
    EXPECT_EQ(child.lacks_peers, c.lacks_peers) << c.what;
  }
}

}  // namespace
}  // namespace grus
