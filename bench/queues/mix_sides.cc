// SPDX-License-Identifier: Apache-2.0
#include "bench/queues/mix_sides.h"

#include <unistd.h>

#include <utility>

#include "bench/storm_sides.h"
#include "clientlib/model/batch_v1.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/pod_group.h"
#include "tests/kit/objects.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

constexpr int kGrusPort = 18276;
constexpr int kKueuePort = 18281;  // As kueue-config.yaml says.
constexpr int kMpiPort = 18285;

constexpr char kElasticJob[] = R"({"apiVersion": "ai.centauruscloud.io/v1alpha1", "kind": "ElasticHorovodJob",
  "metadata": {"name": "NAME"}, "spec": {"workloadClass": "CLASS",
    "launcherSpec": {"image": "horovod/horovod:0.28.1", "pythonCommand": ["python", "/examples/train.py"]},
    "workersSpec": {"image": "horovod/horovod:0.28.1", "minReplicas": LEAST, "maxReplicas": MOST,
                    "gpusPerWorker": GPUS},
    "elastic": {"cooldownSeconds": 5, "shrinkGraceSeconds": 1}}})";

constexpr char kMpiJob[] = R"({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "NAME",
    "labels": {"kueue.x-k8s.io/queue-name": "jobs", "kueue.x-k8s.io/priority-class": "CLASS"}},
  "spec": {"slotsPerWorker": GPUS, "runPolicy": {"cleanPodPolicy": "Running", "suspend": true}, "mpiReplicaSpecs": {
    "Launcher": {"replicas": 1, "template": {"spec": {"containers": [{"name": "launcher",
      "image": "horovod/horovod:0.28.1", "command": ["mpirun", "python", "/examples/train.py"]}]}}},
    "Worker": {"replicas": WORKERS, "template": {"spec": {"containers": [{"name": "worker",
      "image": "horovod/horovod:0.28.1", "resources": {"limits": {"nvidia.com/gpu": "GPUS"}}}]}}}}}})";

const char* ClassOf(MixClass job_class, bool is_kueue) {
  if (job_class == MixClass::kInteractive) return is_kueue ? "interactive" : "Interactive";
  if (job_class == MixClass::kInference) return is_kueue ? "inference" : "Inference";
  return is_kueue ? "unattended" : "Unattended";
}

kube::Status CreateText(kube::Client& client, const std::string& ns, const kube::Kind& kind, const MixJob& job,
                        const char* text, bool is_kueue) {
  return Create(client, ns, kind,
                Filled(text, {{"NAME", job.name},
                              {"CLASS", ClassOf(job.job_class, is_kueue)},
                              {"LEAST", std::to_string(job.min_workers)},
                              {"MOST", std::to_string(job.max_workers)},
                              {"WORKERS", std::to_string(job.workers)},
                              {"GPUS", std::to_string(job.gpus)}}));
}

kube::Status CreateGang(kube::Client& client, const std::string& ns, const MixJob& job) {
  Json group = kit::MakePodGroup(job.name, job.workers);
  if (job.run_seconds > 0) group["spec"]["expectedRuntimeSeconds"] = static_cast<std::int64_t>(job.run_seconds + 1);
  auto made = client.Create(KindOf<api::PodGroup>(), ns, group);
  if (!made) return std::move(made).error();
  // A member that yields comes again, and is no failure of the Job.
  Json members = kit::MakeJob(job.name, job.workers, kit::Gated(kit::PodSpec(job.gpus)), kit::MemberOf(job.name));
  made = client.Create(KindOf<kube::Job>(), ns, members);
  if (!made) return std::move(made).error();
  return {};
}

kube::Status CreateForGrus(kube::Client& client, const std::string& ns, const MixJob& job) {
  if (job.job_class == MixClass::kGang) return CreateGang(client, ns, job);
  return CreateText(client, ns, KindOf<api::ElasticHorovodJob>(), job, kElasticJob, false);
}

std::string Loopback(int port) { return "127.0.0.1:" + std::to_string(port); }

}  // namespace

MixSide MixThroughGrus(const SidePaths& paths) {
  MixSide side;
  side.name = "grus";
  side.programs = {{.name = "grus-manager",
                    .words = {paths.manager, "--kubeconfig", paths.kubeconfig, "--metrics-address", Loopback(kGrusPort),
                              "--health-address", Loopback(kGrusPort + 1), "--log-level", "info"},
                    .port = kGrusPort + 1,
                    .ready_metric = {}}};
  side.files = {paths.manifests + "/teams.yaml", paths.manifests + "/grus.yaml"};
  side.ready_for = "gpuqueue --all --for=condition=Ready";
  side.is_elastic = true;
  side.gangs_have_launchers = false;
  side.create = CreateForGrus;
  return side;
}

MixSide MixThroughKueue(const SidePaths& paths) {
  MixSide side;
  side.name = "kueue+mpi";
  const std::string kueue = paths.peers + "/kueue", mpi = paths.peers + "/mpi-operator";
  for (const std::string& program : {kueue, mpi}) {
    if (paths.peers.empty() || access(program.c_str(), X_OK) != 0) side.not_run = "there is no program " + program;
  }
  // Kueue reads one certificate from below /etc, wherever it runs: it gets an /etc of its own.
  const std::string run = "mount --bind " + paths.manifests + "/etc /etc && exec " + kueue + " --config " +
                          paths.manifests + "/kueue-config.yaml --kubeconfig " + paths.kubeconfig;
  side.programs = {{.name = "kueue",
                    .words = {"/usr/bin/unshare", "-rm", "/bin/bash", "-c", run},
                    .port = kKueuePort,
                    .ready_metric = {}},
                   {.name = "mpi-operator",
                    .words = ThroughMpiOperator(mpi, paths.kubeconfig, kMpiPort).program,
                    .port = kMpiPort,
                    .ready_metric = "mpi_operator_is_leader"}};
  side.files = {paths.manifests + "/teams.yaml", paths.manifests + "/kueue-webhooks.yaml",
                paths.manifests + "/kueue.yaml"};
  side.ready_for = "clusterqueue --all --for=condition=Active";
  side.create = [](kube::Client& client, const std::string& ns, const MixJob& job) {
    return CreateText(client, ns, MpiJobKind(), job, kMpiJob, true);
  };
  return side;
}

MixSide MixThroughKai() {
  MixSide side;
  side.name = "kai";
  side.not_run = "the Go proxy refuses its module (403), and this bench has no way to set up another copy of it";
  return side;
}

}  // namespace bench
