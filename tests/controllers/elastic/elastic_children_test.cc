// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "clientlib/auth/tls_material.h"
#include "controllers/elastic/scripts.h"
#include "controllers/policy/cluster_objects.h"
#include "tests/controllers/elastic/test_job.h"

namespace grus {
namespace {

using kube::Json;
using kube::ToText;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Json Parse(const std::string& text) {
  auto json = kube::ParseJson(text);
  EXPECT_TRUE(json) << text;
  return json ? *std::move(json) : Json();
}

// The value at a path, null if there is none.
Json At(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* found = json.At(path);
  return found ? *found : Json();
}

// Of a pod, or of the template of a workload.
Json PodSpec(const Json& object) {
  return object.At({"spec", "template"}) ? At(object, {"spec", "template", "spec"}) : At(object, {"spec"});
}

Json Container(const Json& object, std::size_t index = 0) {
  const Json containers = At(PodSpec(object), {"containers"});
  EXPECT_TRUE(containers.is_array() && containers.AsArray()->size() > index) << ToText(object);
  return containers.is_array() ? (*containers.AsArray())[index] : Json();
}

bool HasNamed(const Json& list, const char* key, const char* name) {
  if (!list.is_array()) return false;
  return std::any_of(list.AsArray()->begin(), list.AsArray()->end(), [&](const Json& item) {
    const Json* found = item.Find(key);
    return found && *found == Json(name);
  });
}

const JobKeys kKeys{{"the private key", "the public key"}, {"the host's private key", "ssh-ed25519 AAAA"}};

std::vector<Json> AllChildren(const api::ElasticHorovodJob& job) {
  return {MakeService(job), MakeSecret(job, kKeys), MakeHosts(job, {}), MakeWorker(job, 0, Gang::kNone),
          MakeLauncher(job)};
}

TEST(ElasticChildren, W4NamesOfChildrenAreDeterministic) {
  const api::ElasticHorovodJob job = TestJob();
  EXPECT_EQ(ServiceName(job), "bert-workers");
  EXPECT_EQ(WorkersName(job), "bert-workers");
  EXPECT_EQ(LauncherName(job), "bert-launcher");
  EXPECT_EQ(HostsName(job), "bert-hosts");
  EXPECT_EQ(SecretName(job), "bert-files-0b6f1c9e-uid");  // A job made again gets a new key.
}

TEST(ElasticChildren, F3AllCarryOwnerLabelsAndNamespace) {
  for (const Json& child : AllChildren(TestJob())) {
    SCOPED_TRACE(ToText(At(child, {"kind"})));
    EXPECT_EQ(At(child, {"metadata", "namespace"}), Json("team-a"));
    EXPECT_EQ(At(child, {"metadata", "labels", "app.kubernetes.io/managed-by"}), Json("grus"));
    EXPECT_EQ(At(child, {"metadata", "labels", "ai.centauruscloud.io/job-name"}), Json("bert"));
    EXPECT_EQ(At(child, {"metadata", "ownerReferences"}),
              Parse(R"([{"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"ElasticHorovodJob","name":"bert",
                         "uid":"0b6f1c9e-uid","controller":true,"blockOwnerDeletion":true}])"));
  }
}

TEST(ElasticChildren, TheServiceIsHeadlessAndSelectsTheWorkers) {
  const Json service = MakeService(TestJob());
  EXPECT_EQ(At(service, {"metadata", "name"}), Json("bert-workers"));
  EXPECT_EQ(At(service, {"spec", "clusterIP"}), Json("None"));
  EXPECT_EQ(At(service, {"spec", "selector"}),
            Parse(R"({"ai.centauruscloud.io/job-name":"bert","ai.centauruscloud.io/role":"worker"})"));
}

TEST(ElasticChildren, TheSecretHoldsTheKeyPairsAndTheScripts) {
  const Json secret = MakeSecret(TestJob(), kKeys);
  EXPECT_EQ(At(secret, {"immutable"}), Json(true));
  const std::pair<const char*, std::string> files[] = {
      {"id_ed25519", "the private key"},
      {"authorized_keys", "the public key\n"},
      {"host_key", "the host's private key"},
      {"known_hosts", "grus-worker ssh-ed25519 AAAA\n"},
      {"worker.sh", WorkerScript()},
      {"pre_stop.sh", PreStopScript()},
      {"launcher.sh", LauncherScript()},
      {"discover_hosts.sh", DiscoveryScript()},
      {"sitecustomize.py", std::string(HorovodPatch())},
  };
  EXPECT_EQ(At(secret, {"data"}).AsObject()->size(), std::size(files));
  for (const auto& [name, text] : files) {
    EXPECT_EQ(*kube::DecodeBase64(*At(secret, {"data", name}).AsString()), text) << name;
  }
}

TEST(ElasticChildren, TheNetworkPolicyLetsInPodsOfTheJobAndToTheSshServersOnlyTheLauncher) {
  const Json policy = MakeSshPolicy(TestJob());
  EXPECT_EQ(At(policy, {"spec", "podSelector", "matchLabels"}),
            Parse(R"({"ai.centauruscloud.io/job-name":"bert","ai.centauruscloud.io/role":"worker"})"));
  EXPECT_EQ(At(policy, {"spec", "ingress"}), Parse(R"([
      {"from":[{"podSelector":{"matchLabels":{"ai.centauruscloud.io/job-name":"bert",
                                              "ai.centauruscloud.io/role":"launcher"}}}],
       "ports":[{"protocol":"TCP","port":2222,"endPort":2222}]},
      {"from":[{"podSelector":{"matchLabels":{"ai.centauruscloud.io/job-name":"bert"}}}],
       "ports":[{"protocol":"TCP","port":1,"endPort":2221},{"protocol":"TCP","port":2223,"endPort":65535},
                {"protocol":"UDP","port":1,"endPort":65535},{"protocol":"SCTP","port":1,"endPort":65535}]}])"));
}

std::set<std::string> FilesIn(const Json& pod_spec) {
  std::set<std::string> files;
  for (const Json& volume : *pod_spec.Find("volumes")->AsArray()) {
    const Json* items = volume.At({"secret", "items"});
    if (items == nullptr) continue;
    EXPECT_EQ(*volume.At({"secret", "secretName"}), Json("bert-files-0b6f1c9e-uid"));
    for (const Json& item : *items->AsArray()) files.insert(*item.Find("path")->AsString());
  }
  return files;
}

// A worker that is taken over has no key to the others, and a launcher none to pose as a worker.
TEST(ElasticChildren, WorkersAndLauncherHaveOnlyTheFilesThatEachNeeds) {
  EXPECT_THAT(FilesIn(At(MakeWorker(TestJob(), 0, Gang::kNone), {"spec"})),
              UnorderedElementsAre("host_key", "authorized_keys", "worker.sh", "pre_stop.sh", "sitecustomize.py"));
  EXPECT_THAT(FilesIn(At(MakeLauncher(TestJob()), {"spec", "template", "spec"})),
              UnorderedElementsAre("id_ed25519", "known_hosts", "launcher.sh", "sitecustomize.py"));
}

// Each question draws a name; a message that changed with it would be written each time.
TEST(RefusalText, IsTheSameWhateverNameAQuestionDrew) {
  const auto text = [](const std::string& message) {
    return RefusalText(kube::Error(kube::ErrorCode::kForbidden, message), api::ElasticHorovodJob());
  };
  EXPECT_EQ(text("Pod \"a-launcher-d4lvk\" is invalid"), "Pod \"a-launcher-...\" is invalid");
  EXPECT_EQ(text("pods \"b-workers-g8z4h\" is forbidden: a-launcher-x"),
            "pods \"b-workers-...\" is forbidden: a-launcher-x");
  EXPECT_EQ(text("pods \"a-workers-12\" is forbidden"), "pods \"a-workers-12\" is forbidden") << "a worker's own name";
  EXPECT_EQ(text("image \"a-launcher-ababa:1\""), "image \"a-launcher-ababa:1\"");
}

TEST(MakeWorker, HasANumberedNameThatResolves) {
  const Json pod = MakeWorker(TestJob(), 3, Gang::kNone);
  EXPECT_EQ(At(pod, {"metadata", "name"}), Json("bert-workers-3"));
  EXPECT_EQ(At(pod, {"metadata", "labels", "apps.kubernetes.io/pod-index"}), Json("3"));
  EXPECT_EQ(At(pod, {"spec", "hostname"}), Json("bert-workers-3"));
  EXPECT_EQ(At(pod, {"spec", "subdomain"}), At(MakeService(TestJob()), {"metadata", "name"}));
}

// Or one that ends at its start would be made again without end, where its kubelet would wait longer each time.
TEST(MakeWorker, IsStartedAgainByItsKubeletWhateverTheTemplateSays) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.pod_template = Parse(R"({"spec":{"restartPolicy":"Never"}})");
  EXPECT_EQ(MakeWorker(job, 0, Gang::kNone).At({"spec", "restartPolicy"}), nullptr);
}

TEST(MakeWorker, TheServiceSelectsIt) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.pod_template = Parse(R"({"metadata":{"labels":{"ai.centauruscloud.io/role":"impostor","x":"y"}}})");
  const Json labels = At(MakeWorker(job, 0, Gang::kNone), {"metadata", "labels"});
  const Json selector = At(MakeService(job), {"spec", "selector"});
  for (const auto& [key, value] : *selector.AsObject()) EXPECT_EQ(At(labels, {key}), value) << key;
  EXPECT_EQ(At(labels, {"x"}), Json("y"));
}

TEST(MakeWorker, TheWorkerRunsTheSshServerWithItsGpusAndKey) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.gpus_per_worker = 2;
  job.spec.priority_class_name = "batch";
  const Json pod = MakeWorker(job, 0, Gang::kNone);
  const Json worker = Container(pod);
  EXPECT_EQ(At(worker, {"name"}), Json("worker"));
  EXPECT_EQ(At(worker, {"image"}), Json("registry.example.com/worker:1"));
  EXPECT_EQ(At(worker, {"command"}), Parse(R"(["/bin/sh","/etc/grus/job/worker.sh"])"));
  EXPECT_EQ(At(worker, {"lifecycle", "preStop", "exec", "command"}),
            Parse(R"(["/bin/sh","/etc/grus/job/pre_stop.sh","25"])"));
  EXPECT_EQ(At(worker, {"resources", "limits", "nvidia.com/gpu"}), Json("2"));
  EXPECT_EQ(At(worker, {"volumeMounts"}), Parse(R"([{"name":"grus-job","mountPath":"/etc/grus/job","readOnly":true},
                       {"name":"grus-scratch","mountPath":"/tmp/grus"},{"name":"grus-shm","mountPath":"/dev/shm"},
                       {"name":"grus-sshd","mountPath":"/run/sshd"}])"));
  EXPECT_EQ(At(pod, {"spec", "volumes"}),
            Parse(R"([{"name":"grus-job","secret":{"secretName":"bert-files-0b6f1c9e-uid","defaultMode":292,"items":[
                           {"key":"host_key","path":"host_key"},{"key":"authorized_keys","path":"authorized_keys"},
                           {"key":"worker.sh","path":"worker.sh"},{"key":"pre_stop.sh","path":"pre_stop.sh"},
                           {"key":"sitecustomize.py","path":"sitecustomize.py"}]}},
                       {"name":"grus-scratch","emptyDir":{}},{"name":"grus-shm","emptyDir":{"medium":"Memory"}},
                       {"name":"grus-sshd","emptyDir":{}}])"));
  EXPECT_EQ(At(pod, {"spec", "priorityClassName"}), Json("batch"));
}

TEST(MakeWorker, TheGateOfItsGangJoinsTheUsersGates) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.pod_template = Parse(R"({"spec":{"schedulingGates":[{"name":"theirs"}]}})");
  const std::pair<Gang, const char*> kCases[] = {
      {Gang::kGated, R"([{"name":"theirs"},{"name":"scheduling.x-k8s.io/gang"}])"},
      {Gang::kUngated, R"([{"name":"theirs"}])"},
      {Gang::kNone, R"([{"name":"theirs"}])"}};
  for (const auto& [gang, gates] : kCases) {
    const Json pod = MakeWorker(job, 0, gang);
    EXPECT_EQ(At(pod, {"spec", "schedulingGates"}), Parse(gates));
    const Json* group = pod.At({"metadata", "labels", api::kPodGroupLabel});
    EXPECT_EQ(group != nullptr, gang != Gang::kNone);
    // What was decided is read from the pods that exist.
    const auto decoded = kube::Decode<kube::Pod>(ToText(pod));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(ReadWorker(**decoded, 0, true).gang, gang);
  }
}

TEST(ElasticChildren, ATemplateThatIsNoneIsSentForTheApiServerToRefuse) {
  for (const char* text : {R"("x")", "[]", "5", R"({"spec":"x"})", R"({"spec":[]})", R"({"metadata":"x"})",
                           R"({"metadata":{"labels":"x"}})", R"({"metadata":{"annotations":"x"}})",
                           R"({"metadata":{"annotations":["x"]}})", R"({"metadata":{"annotations":null}})",
                           R"({"spec":{"containers":"x","schedulingGates":"x"}})"}) {
    api::ElasticHorovodJob job = TestJob();
    job.spec.workers.pod_template = job.spec.launcher.pod_template = Parse(text);
    EXPECT_TRUE(MakeWorker(job, 0, Gang::kGated).is_object()) << text;
    EXPECT_TRUE(MakeLauncher(job).is_object()) << text;
    ShapeOf(WorkerPod(job));
  }
}

// What was left out when the job was read (clientlib/model/field.h).
TEST(ElasticChildren, ATemplateThatTakesTooMuchMemoryIsNamed) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.launcher.pod_template = Json("too many small values");
  EXPECT_EQ(UnreadableField(job), "spec.launcherSpec.template: too many small values");
}

TEST(MakeLauncher, RunsOnceWithTheHostListMountedAndPushed) {
  const Json launcher = MakeLauncher(TestJob());
  EXPECT_EQ(At(launcher, {"metadata", "name"}), Json("bert-launcher"));
  EXPECT_EQ(At(launcher, {"spec", "backoffLimit"}), Json(1));
  EXPECT_EQ(At(launcher, {"spec", "template", "spec", "restartPolicy"}), Json("Never"));
  const Json container = Container(launcher);
  EXPECT_EQ(At(container, {"name"}), Json("launcher"));
  EXPECT_EQ(At(container, {"resources"}), Json());  // The launcher needs no GPU.
  EXPECT_TRUE(HasNamed(At(container, {"volumeMounts"}), "mountPath", "/etc/grus/hosts"));
  EXPECT_TRUE(HasNamed(At(container, {"volumeMounts"}), "mountPath", "/etc/grus/job"));
  const std::string volumes = ToText(At(launcher, {"spec", "template", "spec", "volumes"}));
  EXPECT_THAT(volumes, HasSubstr(R"("configMap":{"name":"bert-hosts"})"));
  EXPECT_THAT(volumes, HasSubstr(R"("items":[{"key":"discover_hosts.sh","path":"discover_hosts.sh"}])"));
  EXPECT_THAT(volumes, HasSubstr(R"("fieldPath":"metadata.annotations['ai.centauruscloud.io/hosts']")"));
  EXPECT_THAT(volumes, HasSubstr(R"("defaultMode":365)"));  // 0555: Horovod executes the discovery script.
}

TEST(ElasticChildren, ContainersAndVolumesOfTheOriginalReachEveryPod) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.containers = {Parse(R"({"name":"any","volumeMounts":[{"name":"data","mountPath":"/data"}]})"), Json("odd")};
  job.spec.volumes = {Parse(R"({"name":"data","hostPath":{"path":"/mnt"}})")};
  for (const Json& workload : {MakeWorker(job, 0, Gang::kNone), MakeLauncher(job)}) {
    EXPECT_TRUE(HasNamed(At(Container(workload), {"volumeMounts"}), "mountPath", "/data"));
    EXPECT_TRUE(HasNamed(At(PodSpec(workload), {"volumes"}), "name", "data"));
    EXPECT_TRUE(HasNamed(At(PodSpec(workload), {"volumes"}), "name", "grus-job"));
  }
}

TEST(WorkerPod, NamesTheClaimsThatAllWorkersShare) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.volumes = {Parse(R"({"name":"data","persistentVolumeClaim":{"claimName":"images"}})")};
  const kube::Pod worker = WorkerPod(job);
  EXPECT_EQ(worker.metadata.ns, job.metadata.ns);
  ASSERT_EQ(worker.spec.volumes.size(), 1U);
  EXPECT_EQ(worker.spec.volumes[0].claim->claim_name, "images");
}

// How containers are summed is tested in cluster_objects_test.cc.
TEST(WorkerPod, IsWhatTheSchedulerWillCount) {
  struct Case {
    const char* rule;
    const char* spec;
    std::int64_t milli_cpu, memory, gpus;
  };
  const Case kCases[] = {
      {"GPUs alone", "{}", 0, 0, 2},
      {"requests", R"({"containers":[{"name":"worker","resources":{"requests":{"cpu":"1500m","memory":"1Ki"}}}]})",
       1500, 1024, 2},
      {"odd amounts are none",
       R"({"containers":[{"name":"worker","resources":{"requests":{"cpu":"much","memory":[]}}}]})", 0, 0, 2},
  };
  for (const Case& c : kCases) {
    api::ElasticHorovodJob job = TestJob();
    job.spec.workers.gpus_per_worker = 2;
    job.spec.workers.pod_template = Json::MakeObject({{"spec", Parse(c.spec)}});
    const PodShape shape = ShapeOf(WorkerPod(job));
    EXPECT_EQ(shape.request.milli_cpu, c.milli_cpu) << c.rule;
    EXPECT_EQ(shape.request.memory_bytes, c.memory) << c.rule;
    EXPECT_EQ(shape.request.Extended(kGpuResource), c.gpus) << c.rule;
    EXPECT_EQ(shape.request.pods, 1) << c.rule;
  }
}

TEST(WorkerPod, TheAcceleratorOfTheTemplateTakesThePlaceOfGpus) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.gpus_per_worker = 2;
  job.spec.workers.pod_template =
      Parse(R"({"spec":{"containers":[{"name":"worker","resources":{"limits":{"amd.com/gpu":"4"}}}]}})");
  const Json worker = Container(MakeWorker(job, 0, Gang::kNone));
  EXPECT_EQ(At(worker, {"resources"}), Parse(R"({"limits":{"amd.com/gpu":"4"},"requests":{"amd.com/gpu":"4"}})"));
  const PodShape shape = ShapeOf(WorkerPod(job));
  EXPECT_EQ(shape.request.Extended("amd.com/gpu"), 4);
  EXPECT_EQ(shape.request.Accelerator(), "amd.com/gpu");
  EXPECT_EQ(shape.request.Extended(kGpuResource), 0);
}

TEST(WorkerPod, OnTheNodesNetworkItTakesThePortOfItsSshServer) {
  api::ElasticHorovodJob job = TestJob();
  EXPECT_TRUE(ShapeOf(WorkerPod(job)).host_ports.empty());
  job.spec.workers.pod_template = *kube::ParseJson(R"({"spec":{"hostNetwork":true}})");
  EXPECT_EQ(ShapeOf(WorkerPod(job)).host_ports, (std::vector<HostPort>{{kSshPort, "TCP", ""}}));
  job.spec.workers.pod_template = *kube::ParseJson(R"({"spec":{"hostNetwork":true,"containers":[
      {"name":"worker","ports":[{"containerPort":2222,"hostPort":2222}]}]}})");
  EXPECT_EQ(ShapeOf(WorkerPod(job)).host_ports.size(), 1U) << "said by the user";
}

TEST(WorkerPod, TakesSelectorAndTolerationsFromTheTemplate) {
  api::ElasticHorovodJob job = TestJob();
  job.spec.workers.pod_template = Parse(
      R"({"spec":{"nodeSelector":{"gpu":"a100"},
                  "tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule"},{"key":"l","value":"v"}]}})");
  const PodShape shape = ShapeOf(WorkerPod(job));
  EXPECT_EQ(shape.node_selector, (std::map<std::string, std::string>{{"gpu", "a100"}}));
  ASSERT_EQ(shape.tolerations.size(), 2U);
  EXPECT_EQ(shape.tolerations[0].op, "Exists");
  EXPECT_EQ(shape.tolerations[0].effect, "NoSchedule");
  EXPECT_EQ(shape.tolerations[1].value, "v");
}

}  // namespace
}  // namespace grus
