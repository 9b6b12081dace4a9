// SPDX-License-Identifier: Apache-2.0
#include "bench/storm_sides.h"

#include <cstdio>

#include "bench/measure.h"
#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"

namespace bench {

using kube::Json;
using kube::KindOf;

const kube::Kind& MpiJobKind() {
  static const kube::Kind kKind = [] {
    kube::Kind kind = KindOf<kube::ConfigMap>();  // Only created: what the answer says is not read.
    kind.group = "kubeflow.org";
    kind.version = "v2beta1";
    kind.kind = "MPIJob";
    kind.plural = "mpijobs";
    return kind;
  }();
  return kKind;
}

std::string Filled(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [word, value] : words) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size()) {
      text.replace(at, word.size(), value);
    }
  }
  return text;
}

kube::Status Create(kube::Client& client, const std::string& ns, const kube::Kind& kind, const std::string& text) {
  kube::Result<Json> object = kube::ParseJson(text);
  if (!object) return std::move(object).error();
  auto made = client.Create(kind, ns, *object);
  if (!made) return std::move(made).error();
  return {};
}

namespace {

constexpr char kService[] = R"({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "NAME-workers"},
  "spec": {"clusterIP": "None", "selector": {"app": "NAME", "role": "worker"}}})";

constexpr char kWorkers[] = R"({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "NAME-workers"},
  "spec": {"replicas": WORKERS, "serviceName": "NAME-workers", "podManagementPolicy": "Parallel",
    "selector": {"matchLabels": {"app": "NAME", "role": "worker"}},
    "template": {"metadata": {"labels": {"app": "NAME", "role": "worker"}}, "spec": {
      "containers": [{"name": "worker", "image": "horovod/horovod-cpu:latest",
        "command": ["/usr/sbin/sshd", "-D", "-e", "-p", "2222", "-f", "/etc/job/sshd_config"],
        "readinessProbe": {"tcpSocket": {"port": 2222}},
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "key", "mountPath": "/etc/key", "readOnly": true},
                         {"name": "config", "mountPath": "/etc/job", "readOnly": true},
                         {"name": "shm", "mountPath": "/dev/shm"}]}],
      "volumes": [{"name": "key", "secret": {"secretName": "ssh-key", "defaultMode": 256}},
                  {"name": "config", "configMap": {"name": "ssh-config"}},
                  {"name": "shm", "emptyDir": {"medium": "Memory"}}]}}}})";

constexpr char kLauncher[] = R"({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "NAME-launcher"},
  "spec": {"template": {"metadata": {"labels": {"app": "NAME", "role": "launcher"}}, "spec": {
      "restartPolicy": "Never",
      "containers": [{"name": "launcher", "image": "horovod/horovod-cpu:latest",
        "command": ["horovodrun", "-np", "WORKERS", "-H", "HOSTS", "-p", "2222", "python", "/examples/train.py"],
        "volumeMounts": [{"name": "key", "mountPath": "/etc/key", "readOnly": true},
                         {"name": "config", "mountPath": "/etc/job", "readOnly": true}]}],
      "volumes": [{"name": "key", "secret": {"secretName": "ssh-key", "defaultMode": 256}},
                  {"name": "config", "configMap": {"name": "ssh-config"}}]}}}})";

constexpr char kKey[] = R"({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ssh-key"},
  "stringData": {"id_ed25519": "a key", "authorized_keys": "its other half"}})";
constexpr char kConfig[] = R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssh-config"},
  "data": {"sshd_config": "AuthorizedKeysFile /etc/key/authorized_keys", "ssh_config": "StrictHostKeyChecking no"}})";

constexpr char kMpiJob[] = R"({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "NAME"},
  "spec": {"slotsPerWorker": 1, "runPolicy": {"cleanPodPolicy": "Running"}, "mpiReplicaSpecs": {
    "Launcher": {"replicas": 1, "template": {"spec": {"containers": [{"name": "launcher",
      "image": "horovod/horovod-cpu:latest", "command": ["mpirun", "-np", "WORKERS", "python", "/examples/train.py"]}]}}},
    "Worker": {"replicas": WORKERS, "template": {"spec": {"containers": [{"name": "worker",
      "image": "horovod/horovod-cpu:latest", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}}}})";

std::vector<std::pair<std::string, std::string>> WordsOf(int index, const StormOptions& options) {
  const std::string name = "storm-" + std::to_string(index);
  std::string hosts;
  for (int i = 0; i < options.workers; ++i) {
    hosts += (i == 0 ? "" : ",") + name + "-workers-" + std::to_string(i) + "." + name + "-workers:1";
  }
  return {{"NAME", name}, {"WORKERS", std::to_string(options.workers)}, {"HOSTS", hosts}};
}

bool CreateByHand(kube::Client& client, const std::string& ns, const StormOptions& options) {
  kube::Status shared = Create(client, ns, KindOf<kube::Secret>(), kKey);
  if (shared) shared = Create(client, ns, KindOf<kube::ConfigMap>(), kConfig);
  if (!shared) {
    std::fprintf(stderr, "%s\n", shared.error().message().c_str());
    return false;
  }
  return InParallel(options.jobs, options.threads, [&](int i) {
    const auto words = WordsOf(i, options);
    kube::Status made = Create(client, ns, KindOf<kube::Service>(), Filled(kService, words));
    if (made) made = Create(client, ns, KindOf<kube::StatefulSet>(), Filled(kWorkers, words));
    if (made) made = Create(client, ns, KindOf<kube::Job>(), Filled(kLauncher, words));
    return made;
  });
}

bool CreateMpiJobs(kube::Client& client, const std::string& ns, const StormOptions& options) {
  return InParallel(options.jobs, options.threads,
                    [&](int i) { return Create(client, ns, MpiJobKind(), Filled(kMpiJob, WordsOf(i, options))); });
}

}  // namespace

StormSide ByHand() {
  StormSide side;
  side.name = "by hand";
  side.create = CreateByHand;
  return side;
}

StormSide ThroughGrus(const std::string& manager, const std::string& kubeconfig, int port) {
  StormSide side;
  side.name = "grus";
  side.program = {manager,
                  "--kubeconfig",
                  kubeconfig,
                  "--metrics-address",
                  "127.0.0.1:" + std::to_string(port),
                  "--health-address",
                  "127.0.0.1:" + std::to_string(port + 1),
                  "--log-level",
                  "warn"};
  side.metrics_port = port;
  side.ready_metric = "rest_client_requests_total{";
  side.ready_value = 5;  // Its lists.
  side.is_grus = true;
  side.create = CreateJobs;
  return side;
}

StormSide ThroughMpiOperator(const std::string& program, const std::string& kubeconfig, int port) {
  StormSide side;
  side.name = "mpi-operator";
  side.program = {program,
                  "--kubeConfig",
                  kubeconfig,
                  "--monitoring-port",
                  std::to_string(port),
                  "--lock-namespace",
                  "default",
                  "--kube-api-qps",
                  "1000",
                  "--kube-api-burst",
                  "2000",
                  "--controller-queue-rate-limit",  // 10 keys a second by default, for all jobs together.
                  "1000",
                  "--controller-queue-burst",
                  "2000",
                  "--threadiness",
                  "8"};
  side.metrics_port = port;
  side.ready_metric = "mpi_operator_is_leader";
  side.create = CreateMpiJobs;
  return side;
}

}  // namespace bench
