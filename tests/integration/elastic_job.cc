// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/elastic_job.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "tests/kit/objects.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;
using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

constexpr char kBasePool[] = "base";
constexpr char kPoolLabel[] = "grus.test/pool";

std::string Unique(const std::string& prefix) {
  static int count = 0;
  return prefix + "-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

}  // namespace

std::unique_ptr<World> ElasticJob::world_;
std::unique_ptr<ManagerProcess> ElasticJob::manager_;
std::vector<std::string> ElasticJob::nodes_;
std::vector<std::string> ElasticJob::namespaces_;

void ElasticJob::SetUpTestSuite() {
  StartWorld();
  StartManager();
}

void ElasticJob::StartWorld() {
  world_ = std::make_unique<World>();
  CreateNode(Unique("it-base"), kBasePool, 0);
}

void ElasticJob::TearDownTestSuite() {
  if (manager_) {
    EXPECT_EQ(manager_->Terminate(), 0) << manager_->Tail(30);
    EXPECT_NE(manager_->output().find("stopped"), std::string::npos) << manager_->Tail(30);
    manager_.reset();
  }
  if (!world_) return;
  // Pods whose node is gone would wait for the garbage collector: nodes go last.
  EXPECT_TRUE(world_->Await([] {
    return std::all_of(namespaces_.begin(), namespaces_.end(),
                       [](const std::string& ns) { return world_->List<kube::Pod>(ns).empty(); });
  }));
  for (const std::string& node : nodes_) Must(client().Delete(KindOf<kube::Node>(), {"", node}));
  nodes_.clear();
  namespaces_.clear();
  world_.reset();
}

void ElasticJob::StartManager(std::vector<std::string> more_arguments) {
  more_arguments.insert(more_arguments.end(), {"--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0"});
  manager_ = std::make_unique<ManagerProcess>(more_arguments);
  if (!manager_->AwaitOutput("caches are synced")) {
    throw std::runtime_error("the manager did not start: " + manager_->Tail(30));
  }
}

void ElasticJob::KillManager() {
  manager_->Signal(SIGKILL);
  ASSERT_EQ(manager_->WaitForExit(), 128 + SIGKILL) << manager_->Tail(30);
}

Writes ElasticJob::CountWrites() {
  // grus_requests_total{verb="patch",kind="Pod"} 12
  const auto label = [](const std::string& line, const std::string& name) {
    const std::size_t from = line.find(name + "=\"") + name.size() + 2;
    return line.substr(from, line.find('"', from) - from);
  };
  Writes writes;
  std::istringstream lines(HttpGet(manager_->NumberAfter("metrics_port="), "/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("grus_requests_total{")) continue;
    const std::string verb = label(line, "verb");
    if (verb == "get" || verb == "list" || verb == "watch" || verb == "log" || verb == "dry-run") continue;
    writes[verb + " " + label(line, "kind")] += std::atoi(line.c_str() + line.rfind(' '));
  }
  return writes;
}

void ElasticJob::SetUp() {
  ns_ = Unique("it");
  Must(client().Create(KindOf<kube::Namespace>(), "", kit::MakeObject("v1", "Namespace", ns_)));
  ASSERT_TRUE(Await("the namespace is usable", [&] { return world_->Get<ServiceAccount>(ns_, "default") != nullptr; }));
}

void ElasticJob::TearDown() {
  // Jobs first: the manager does not try to keep up what the namespace controller takes away.
  for (const auto& job : world_->List<api::ElasticHorovodJob>(ns_)) {
    world_->Delete(KindOf<api::ElasticHorovodJob>(), job->metadata.Key());
  }
  Must(client().Delete(KindOf<kube::Namespace>(), {"", ns_}));
  namespaces_.push_back(ns_);
}

std::string ElasticJob::CreateNode(const std::string& name, const std::string& pool, int gpus, bool has_kubelet) {
  Json node = kit::MakeNode(name, gpus);
  node["metadata"]["annotations"]["kwok.x-k8s.io/node"] = "fake";
  node["metadata"]["labels"][kPoolLabel] = pool;
  if (!has_kubelet) {
    node["metadata"].Erase("annotations");
    node["status"]["conditions"] = FromText(R"([{"type":"Ready","status":"True","reason":"Test"}])");
  }
  Must(client().Create(KindOf<kube::Node>(), "", node));
  nodes_.push_back(name);
  const bool is_usable = world_->Await([&] {
    const auto made = world_->Get<kube::Node>("", name);
    return made && kube::IsConditionTrue(made->status.conditions, "Ready") && made->spec.taints.empty();
  });
  if (!is_usable) throw std::runtime_error("node " + name + " did not turn Ready");
  return name;
}

std::string ElasticJob::AddNode(int gpus, std::string name) {
  if (name.empty()) name = ns_ + "-" + std::to_string(node_count_++);
  return CreateNode(name, pool(), gpus);
}

std::string ElasticJob::AddNodeWithoutKubelet(int gpus) {
  return CreateNode(ns_ + "-" + std::to_string(node_count_++), pool(), gpus, false);
}

void ElasticJob::AddNodes(int count, int gpus) {
  for (int i = 0; i < count; ++i) AddNode(gpus);
}

void ElasticJob::DeleteNode(const std::string& name) {
  world_->Delete(KindOf<kube::Node>(), {"", name});
  std::erase(nodes_, name);
}

Json ElasticJob::Manifest(const std::string& name, std::string_view spec) const {
  Json job = FromText(
      R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"ElasticHorovodJob","metadata":{},"spec":{
      "launcherSpec":{"image":"registry.test/train:1","pythonCommand":["python","train.py"]},
      "workersSpec":{"image":"registry.test/train:1"},
      "elastic":{"unschedulableGraceSeconds":1,"cooldownSeconds":1,"shrinkGraceSeconds":1}}})");
  job["metadata"]["name"] = name;
  job["metadata"]["namespace"] = ns_;
  job["spec"]["launcherSpec"]["template"]["spec"]["nodeSelector"][kPoolLabel] = kBasePool;
  job["spec"]["workersSpec"]["template"]["spec"]["nodeSelector"][kPoolLabel] = pool();
  kube::MergePatch(job["spec"], FromText(spec));
  return job;
}

void ElasticJob::Create(std::string_view spec, const std::string& name) {
  world_->Create(KindOf<api::ElasticHorovodJob>(), ns_, Manifest(name, spec));
}

void ElasticJob::Edit(std::string_view patch, const std::string& name) { Patch<api::ElasticHorovodJob>(name, patch); }

void ElasticJob::Scale(int replicas, const std::string& name) {
  const kube::HttpResponse answer = world_->Send(
      "PATCH", "/apis/ai.centauruscloud.io/v1alpha1/namespaces/" + ns_ + "/elastichorovodjobs/" + name + "/scale",
      "application/merge-patch+json", "{\"spec\":{\"replicas\":" + std::to_string(replicas) + "}}");
  if (answer.status != 200) throw std::runtime_error("scale: " + answer.body);
}

void ElasticJob::SetOutcome(const std::string& pod, const std::string& outcome) {
  Patch<kube::Pod>(pod, R"({"metadata":{"annotations":{"grus.test/outcome":")" + outcome + "\"}}}");
}

std::string ElasticJob::Phase(const std::string& name) const {
  const JobPtr job = TheJob(name);
  return job ? job->status.phase : "";
}

bool ElasticJob::IsTrue(std::string_view type, const std::string& name) const {
  const JobPtr job = TheJob(name);
  return job && kube::IsConditionTrue(job->status.conditions, type);
}

bool ElasticJob::Says(std::string_view condition, std::string_view text, const std::string& name) const {
  return MessageOf(condition, name).find(text) != std::string::npos;
}

std::shared_ptr<const kube::Job> ElasticJob::Launcher(const std::string& name) const {
  return world_->Get<kube::Job>(ns_, name + "-launcher");
}

std::set<std::string> ElasticJob::Hosts(const std::string& name) const {
  const auto map = world_->Get<kube::ConfigMap>(ns_, name + "-hosts");
  const auto list = map ? ReadHostList(*map) : std::nullopt;
  std::set<std::string> pods;
  for (const Host& host : list ? list->hosts : std::vector<Host>()) pods.insert(host.pod);
  return pods;
}

PodList ElasticJob::AllPods(const std::string& name) const {
  PodList pods = world_->List<kube::Pod>(ns_);
  std::erase_if(pods, [&](const PodPtr& pod) { return pod->metadata.Label(kJobNameLabel) != name; });
  return pods;
}

PodList ElasticJob::Workers(const std::string& name) const {
  PodList pods = AllPods(name);
  std::erase_if(pods, [](const PodPtr& pod) {
    return pod->metadata.Label(kRoleLabel) != "worker" || pod->metadata.is_being_deleted() ||
           pod->status.phase == "Failed";
  });
  return pods;
}

PodPtr ElasticJob::LauncherPod(const std::string& name) const {
  for (const PodPtr& pod : AllPods(name)) {
    if (pod->metadata.Label(kRoleLabel) == "launcher" && pod->status.phase == "Running" &&
        !pod->metadata.is_being_deleted()) {
      return pod;
    }
  }
  return nullptr;
}

bool ElasticJob::Trains(int workers, const std::string& name) const {
  const JobPtr job = TheJob(name);
  if (!job || job->status.phase != "Running" || job->status.observed_generation != job->metadata.generation)
    return false;
  std::set<std::string> names;
  for (const PodPtr& pod : Workers(name)) {
    if (!IsReady(*pod)) return false;
    names.insert(pod->metadata.name);
  }
  return job->status.replicas.ready == workers && job->status.replicas.granted == workers &&
         names.size() == static_cast<std::size_t>(workers) && Hosts(name) == names && LauncherPod(name) != nullptr;
}

bool ElasticJob::HoldsNothing(const std::string& name) const { return AllPods(name).empty() && !Launcher(name); }

AssertionResult ElasticJob::Failure(const std::string& what) const {
  return AssertionFailure() << "not so: " << what << "\n"
                            << world_->Describe(ns_) << "the manager's last lines:\n"
                            << (manager_ ? manager_->Tail(30) : "");
}

AssertionResult ElasticJob::Await(const std::string& what, const std::function<bool()>& holds,
                                  kube::Duration limit) const {
  return world_->Await(holds, limit) ? AssertionSuccess() : Failure(what);
}

AssertionResult ElasticJob::AwaitTrains(int workers, const std::string& name) const {
  return Await(name + " trains with " + std::to_string(workers), [&] { return Trains(workers, name); });
}

AssertionResult ElasticJob::Stays(const std::string& what, const std::function<bool()>& holds,
                                  kube::Duration duration) const {
  return world_->Stays(holds, duration) ? AssertionSuccess() : Failure(what);
}

AssertionResult ElasticJob::WritesNothing(kube::Duration duration) const {
  // The statuses of pods are the kubelets' to write, whenever they like; ours are all the others, and CountWrites().
  const auto others = [&] {
    std::vector<Step> history = world_->History(ns_);
    std::erase_if(history, [](const Step& step) { return step.kind == &KindOf<kube::Pod>(); });
    return history;
  };
  // Each change begins the wait anew, and there may be many: also tests before this one must have come to their end.
  const auto until = std::chrono::steady_clock::now() + 2 * World::kLimit;
  for (bool is_at_rest = false; !is_at_rest;) {
    if (std::chrono::steady_clock::now() > until) return Failure("it comes to rest");
    const std::size_t before = others().size();
    const Writes writes = CountWrites();
    is_at_rest = world_->Stays([&] { return others().size() == before; }, kRest) && CountWrites() == writes;
  }
  const std::size_t seen = others().size();
  const Writes before = CountWrites();
  world_->Stays([&] { return others().size() == seen; }, duration);
  const Writes after = CountWrites();
  const std::vector<Step> history = others();
  if (after == before && history.size() == seen) return AssertionSuccess();
  AssertionResult failure = AssertionFailure();
  for (std::size_t i = seen; i < history.size(); ++i) failure << Describe(history[i]) << "\n";
  for (const auto& [what, count] : after) failure << what << " " << count << "; ";
  failure << "before: ";
  for (const auto& [what, count] : before) failure << what << " " << count << "; ";
  return failure;
}

std::map<std::string, std::string> Uids(const PodList& pods) {
  std::map<std::string, std::string> uids;
  for (const PodPtr& pod : pods) uids[pod->metadata.name] = pod->metadata.uid;
  return uids;
}

PodList Where(const PodList& pods, bool (*predicate)(const kube::Pod&)) {
  PodList found;
  std::copy_if(pods.begin(), pods.end(), std::back_inserter(found), [&](const PodPtr& pod) { return predicate(*pod); });
  return found;
}

AssertionResult AllSurvive(const PodList& before, const PodList& now) {
  const auto uids = Uids(now);
  for (const PodPtr& pod : before) {
    const auto found = uids.find(pod->metadata.name);
    if (found == uids.end()) return AssertionFailure() << pod->metadata.name << " is gone";
    if (found->second != pod->metadata.uid) return AssertionFailure() << pod->metadata.name << " is another pod now";
  }
  return AssertionSuccess();
}

}  // namespace grus::testing
