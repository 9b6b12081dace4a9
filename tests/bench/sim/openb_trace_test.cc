// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_trace.h"

#include <gtest/gtest.h>

#include "tests/kit/must.h"

namespace grus {
namespace {

constexpr char kNodes[] =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "node-b,96000,393216,2,T4\n"
    "node-a,64000,262144,0,\n"
    "node-c,64000,262144,1,V100\n";
constexpr char kPodColumns[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";

kube::Result<OpenbTrace> Read(const std::string& nodes, const std::string& pods) {
  return ReadOpenbTrace(kit::Must(ParseCsv(nodes, "nodes.csv")), kit::Must(ParseCsv(pods, "pods.csv")));
}

TEST(OpenbTrace, SortsNodesAndPodsByName) {
  const OpenbTrace trace = kit::Must(Read(kNodes, std::string(kPodColumns) + "q,100,200,2,1000,\np,300,400,1,460,\n"));

  ASSERT_EQ(trace.nodes.size(), 3u);
  EXPECT_EQ(trace.nodes[0].name, "node-a");
  EXPECT_EQ(trace.nodes[1].free.milli_cpu, 96000);
  EXPECT_EQ(trace.nodes[1].memory_mib, 393216);
  EXPECT_EQ(trace.nodes[1].free.device_milli, (std::vector{1000, 1000}));
  EXPECT_EQ(trace.gpu_milli(), 3000);
  ASSERT_EQ(trace.pods.size(), 2u);
  EXPECT_EQ(trace.pods[0].name, "p");
  EXPECT_EQ(trace.pods[0].request, (GpuRequest{300, 1, 460, kAnyModel}));
  EXPECT_EQ(trace.pods[0].memory_mib, 400);
  EXPECT_EQ(trace.pods[1].gpu_milli(), 2000);
}

TEST(OpenbTrace, TakesAPodsModelsFromItsList) {
  struct Case {
    const char* spec;
    bool fits_t4, fits_v100;
  };
  for (const Case& c : {Case{"", true, true}, Case{"T4", true, false}, Case{"V100|T4", true, true},
                        Case{"A100|V100|V100", false, true}, Case{"A100", false, false}}) {
    const OpenbTrace trace = kit::Must(Read(kNodes, std::string(kPodColumns) + "p,1,1,1,500," + c.spec + "\n"));

    EXPECT_EQ(Fits(trace.nodes[1].free, trace.pods[0].request), c.fits_t4) << c.spec;
    EXPECT_EQ(Fits(trace.nodes[2].free, trace.pods[0].request), c.fits_v100) << c.spec;
  }
}

TEST(OpenbTrace, ReadsAListWithoutModels) {
  const auto trace = Read(kNodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,500\n");

  EXPECT_EQ(kit::Must(trace).pods[0].request.models, kAnyModel);
}

TEST(OpenbTrace, SaysWhereAFileIsWrongAndWhatToDo) {
  const std::string nodes = kNodes, node_columns = nodes.substr(0, nodes.find('\n') + 1), pods = kPodColumns;
  const std::string good_pod = pods + "p,1,1,1,500,\n";
  std::string many_nodes;
  for (int i = 0; i < 100; ++i) many_nodes += "many-" + std::to_string(i) + ",1,1,64,T4\n";
  struct Case {
    std::string nodes, pods, want;
  };
  for (const Case& c : {
           Case{"sn,cpu_milli,memory_mib,model\na,1,1,T4\n", good_pod,
                "nodes.csv:1: no column gpu; the header must name sn, cpu_milli, memory_mib, gpu, model"},
           Case{nodes, "name,cpu_milli,memory_mib,num_gpu\np,1,1,1\n",
                "pods.csv:1: no column gpu_milli; the header must name name, cpu_milli, memory_mib, num_gpu, "
                "gpu_milli"},
           Case{nodes + "d,x,1,1,T4\n", good_pod,
                "nodes.csv:5: column cpu_milli: \"x\" is wrong; write a whole number from 0 to 1000000000"},
           Case{nodes + "d,1,-1,1,T4\n", good_pod,
                "nodes.csv:5: column memory_mib: \"-1\" is wrong; write a whole number from 0 to 1000000000"},
           Case{nodes + "d,1,1,65,T4\n", good_pod,
                "nodes.csv:5: column gpu: \"65\" is wrong; write a whole number from 0 to 64"},
           Case{nodes + ",1,1,1,T4\n", good_pod, "nodes.csv:5: column sn: \"\" is empty; write a value"},
           Case{nodes + "node-c,1,1,1,T4\n", good_pod,
                "nodes.csv:5: column sn: \"node-c\" is the name of an earlier node; give each its own"},
           Case{node_columns + "a,1,1,0,\n", good_pod, "nodes.csv: column gpu: no node has a GPU; add one that has"},
           Case{nodes, pods + ",1,1,1,500,\n", "pods.csv:2: column name: \"\" is empty; write a value"},
           Case{nodes, pods + "p,1,1,3,1000,\n",
                "pods.csv:2: column num_gpu: \"3\" is more than any node has; the largest has 2 GPUs: remove the pod, "
                "or "
                "add a node"},
           Case{nodes, pods + "p,1,,1,500,\n",
                "pods.csv:2: column memory_mib: \"\" is wrong; write a whole number from 0 to 1000000000"},
           Case{nodes, pods + "p,1,1,1,0,\n",
                "pods.csv:2: column gpu_milli: \"0\" is wrong; with num_gpu 1 write a whole number from 1 to 1000"},
           Case{nodes, pods + "p,1,1,1,1001,\n",
                "pods.csv:2: column gpu_milli: \"1001\" is wrong; write a whole number from 0 to 1000"},
           Case{nodes, pods + "p,1,1,2,500,\n",
                "pods.csv:2: column gpu_milli: \"500\" is wrong; with num_gpu 2 write 1000"},
           Case{nodes, pods + "p,1,1,0,5,\n", "pods.csv:2: column gpu_milli: \"5\" is wrong; with num_gpu 0 write 0"},
           Case{nodes, pods + "p,1,1,1.5,500,\n",
                "pods.csv:2: column num_gpu: \"1.5\" is wrong; write a whole number from 0 to 1000000000"},
           Case{nodes, pods + "p,1,1,0,0,\n", "pods.csv: column num_gpu: no pod asks for a GPU; add one that does"},
           Case{nodes + many_nodes, pods + "p,1,1,1,1,\n",
                "pods.csv: column gpu_milli: the pods ask for so little that over 5000000 would fill the cluster; add "
                "larger ones, or remove nodes"},
       }) {
    const auto trace = Read(c.nodes, c.pods);

    ASSERT_FALSE(trace) << c.want;
    EXPECT_EQ(trace.error().message(), c.want);
  }
}

TEST(OpenbTrace, RefusesMoreModelsThanItCanNumber) {
  std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int i = 0; i <= kMaxGpuModels; ++i) nodes += "n" + std::to_string(i) + ",1,1,1,m" + std::to_string(i) + "\n";

  const auto trace = Read(nodes, std::string(kPodColumns) + "p,1,1,1,500,\n");

  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().message(), "nodes.csv:66: column model: \"m64\" is one model too many; use at most 64");
}

}  // namespace
}  // namespace grus
