// SPDX-License-Identifier: Apache-2.0
// What users cannot do with pods of their own they cannot do through grus: a namespace in which the Pod Security
// Standard "restricted" holds, and each field that it forbids in the templates of jobs and trials.
#include <gmock/gmock.h>

#include "controllers/policy/pod_security.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;
using std::chrono::seconds;

struct Field {
  const char* name;
  const char* spec;       // Merged into the pod's.
  const char* container;  // Merged into its container.
};

const Field kForbidden[] = {
    {"host-network", R"({"hostNetwork":true})", "{}"},
    {"host-pid", R"({"hostPID":true})", "{}"},
    {"host-ipc", R"({"hostIPC":true})", "{}"},
    {"host-path", R"({"volumes":[{"name":"h","hostPath":{"path":"/"}}]})", "{}"},
    {"nfs", R"({"volumes":[{"name":"h","nfs":{"server":"a","path":"/"}}]})", "{}"},
    {"host-port", "{}", R"({"ports":[{"containerPort":80,"hostPort":80}]})"},
    {"privileged", "{}", R"({"securityContext":{"privileged":true,"allowPrivilegeEscalation":true}})"},
    {"privileged-alone", "{}", R"({"securityContext":{"privileged":true}})"},
    {"sys-admin", "{}", R"({"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}})"},
    {"keeps-capabilities", "{}", R"({"securityContext":{"capabilities":{"drop":["KILL"]}}})"},
    {"escalation", "{}", R"({"securityContext":{"allowPrivilegeEscalation":true}})"},
    {"root-pod", R"({"securityContext":{"runAsNonRoot":false}})", "{}"},
    {"root-container", "{}", R"({"securityContext":{"runAsNonRoot":false}})"},
    {"user-0-pod", R"({"securityContext":{"runAsUser":0}})", "{}"},
    {"user-0-container", "{}", R"({"securityContext":{"runAsUser":0}})"},
    {"seccomp-pod", R"({"securityContext":{"seccompProfile":{"type":"Unconfined"}}})", "{}"},
    {"seccomp-container", "{}", R"({"securityContext":{"seccompProfile":{"type":"Unconfined"}}})"},
    {"app-armor", "{}", R"({"securityContext":{"appArmorProfile":{"type":"Unconfined"}}})"},
    {"selinux-type", R"({"securityContext":{"seLinuxOptions":{"type":"spc_t"}}})", "{}"},
    {"selinux-role", "{}", R"({"securityContext":{"seLinuxOptions":{"role":"sysadm_r"}}})"},
    {"sysctl", R"({"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}})", "{}"},
    {"proc-mount", R"({"hostUsers":false})", R"({"securityContext":{"procMount":"Unmasked"}})"},
    {"windows-host", R"({"securityContext":{"windowsOptions":{"hostProcess":true}}})", "{}"},
    {"init-container", R"({"initContainers":[{"name":"i","image":"registry.test/i:1",
        "securityContext":{"privileged":true,"allowPrivilegeEscalation":true}}]})",
     "{}"},
};
constexpr int kFields = 24;
static_assert(std::size(kForbidden) == kFields);

// The ways into pods: templates of three kinds, and a pod that claims by its labels to be a job's.
enum class Way { kWorkers, kLauncher, kTrial, kLabel };
// How the field comes into the object.
enum class Verb { kCreate, kUpdate, kApply };

class HostilePods : public TrialJobs {
 protected:
  void SetUp() override {
    TrialJobs::SetUp();
    const std::string label = R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})";
    ASSERT_EQ(world().Send("PATCH", "/api/v1/namespaces/" + ns(), "application/merge-patch+json", label).status, 200);
  }

  static std::string Template(const Field& field, const char* container_name) {
    Json container = FromText(field.container), pod = FromText(field.spec);
    container["name"] = container_name;
    container["image"] = "registry.test/train:1";
    pod["containers"] = Json::MakeArray({std::move(container)});
    return R"({"spec":)" + kube::ToText(pod) + "}";
  }
  // A manifest whose pods have the field. `is_active`: they are to run.
  Json Dangerous(Way way, const std::string& name, const Field& field, bool is_active) const {
    const std::string suspend = is_active ? "false" : "true";
    if (way == Way::kTrial) {
      return FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{"name":")" + name +
                      R"("},"spec":{"suspend":)" + suspend +
                      R"(,"space":{"gpuCounts":[1]},"workload":{"podTemplate":)" + Template(field, "train") + "}}}");
    }
    const bool is_launcher = way == Way::kLauncher;
    Json job = Manifest(name, R"({"workersSpec":{"gpusPerWorker":0,"minReplicas":1,"maxReplicas":1},
        "runPolicy":{"suspend":)" +
                                  suspend + "}}");
    Json& part = job["spec"][is_launcher ? "launcherSpec" : "workersSpec"];
    part["template"] = FromText(Template(field, is_launcher ? "launcher" : "worker"));
    return job;
  }
  static Json Harmless(Json manifest) {
    for (const char* part : {"launcherSpec", "workersSpec"}) {
      if (manifest["spec"].Find(part) != nullptr) manifest["spec"][part].Erase("template");
    }
    return manifest;
  }
  std::string PathOf(Way way, const std::string& name = {}) const {
    const std::string plural = way == Way::kTrial ? "trialjobs" : "elastichorovodjobs";
    return "/apis/ai.centauruscloud.io/v1alpha1/namespaces/" + ns() + "/" + plural + (name.empty() ? "" : "/" + name);
  }
  // Whether the API server took all of it.
  bool Write(Way way, Verb verb, const std::string& name, const Field& field) {
    const Json dangerous = Dangerous(way, name, field, true);
    const auto took = [](const kube::HttpResponse& answer) { return answer.status == 200 || answer.status == 201; };
    if (verb == Verb::kCreate) return took(world().Send("POST", PathOf(way), "application/json", ToText(dangerous)));
    if (verb == Verb::kUpdate) {
      // A trial's template cannot be changed; it is only let go.
      const Json before = Dangerous(way, name, field, false);
      const Json first = way == Way::kTrial ? before : Harmless(before);
      return took(world().Send("POST", PathOf(way), "application/json", ToText(first))) &&
             took(world().Send("PATCH", PathOf(way, name), "application/merge-patch+json", ToText(dangerous)));
    }
    return took(world().Send("PATCH", PathOf(way, name) + "?fieldManager=tenant", "application/apply-patch+yaml",
                             ToText(dangerous)));
  }
  // The tenant's own pod, as if it were a worker of a job.
  int WriteLabelled(Verb verb, const std::string& name, const Field& field) {
    Json pod = FromText(Template(field, "worker"));
    pod["apiVersion"] = "v1";
    pod["kind"] = "Pod";
    pod["metadata"] = FromText(R"({"name":")" + name + R"(","labels":{"app.kubernetes.io/managed-by":"grus",
        "ai.centauruscloud.io/job-name":"train","ai.centauruscloud.io/role":"worker"}})");
    const std::string pods = "/api/v1/namespaces/" + ns() + "/pods";
    if (verb == Verb::kCreate) return world().Send("POST", pods, "application/json", ToText(pod)).status;
    if (verb == Verb::kUpdate) return world().Send("PUT", pods + "/" + name, "application/json", ToText(pod)).status;
    return world()
        .Send("PATCH", pods + "/" + name + "?fieldManager=tenant", "application/apply-patch+yaml", ToText(pod))
        .status;
  }
  std::string WhyNot(Way way, const std::string& name) const {
    return way == Way::kTrial ? ReadyMessage(name) : MessageOf("Ready", name);
  }
  std::vector<std::string> PodsEver() const {
    std::vector<std::string> names;
    for (const Step& step : world().History(ns())) {
      if (step.kind == &KindOf<kube::Pod>() && !step.before) names.push_back(step.after->metadata.name);
    }
    return names;
  }
};

TEST_F(HostilePods, NoForbiddenFieldGetsIntoAPod) {
  const std::pair<Way, const char*> kWays[] = {
      {Way::kWorkers, "worker"}, {Way::kLauncher, "launcher"}, {Way::kTrial, "trial"}};
  const std::pair<Verb, const char*> kVerbs[] = {
      {Verb::kCreate, "create"}, {Verb::kUpdate, "update"}, {Verb::kApply, "apply"}};
  std::vector<std::pair<Way, std::string>> waits;
  int attempts = 0;
  for (const Field& field : kForbidden) {
    for (const auto& [verb, verb_name] : kVerbs) {
      for (const auto& [way, way_name] : kWays) {
        const std::string name = std::string(field.name) + "-" + way_name + "-" + verb_name;
        ++attempts;
        if (Write(way, verb, name, field)) waits.emplace_back(way, name);
        else ADD_FAILURE() << name << " is no valid object: it shows nothing";
      }
      ++attempts;
      const std::string name = std::string(field.name) + "-label-" + verb_name;
      EXPECT_GE(WriteLabelled(verb, name, field), 400) << name;
    }
  }
  EXPECT_EQ(attempts, 288);

  std::string silent;
  EXPECT_TRUE(Await(
      "each says what the API server refuses",
      [&] {
        silent.clear();
        for (const auto& [way, name] : waits) {
          const std::string why = WhyNot(way, name);
          const bool says = why.find("PodSecurity") != std::string::npos || why.find("nvalid") != std::string::npos;
          if (!says) silent += name + ": " + why + "\n";
        }
        return silent.empty();
      },
      seconds(420)))
      << silent;
  // One of 264 that came into being would have the field.
  EXPECT_THAT(PodsEver(), ::testing::IsEmpty());
}

TEST_F(HostilePods, AJobOfNothingButImagesRuns) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2}})");

  ASSERT_TRUE(AwaitTrains(2));

  for (const PodPtr& pod : AllPods()) {
    EXPECT_EQ(pod->metadata.Annotation(kPodSecurityAnnotation), "restricted") << pod->metadata.name;
  }
  EXPECT_EQ(AllPods().size(), 3U);
  // As after a restart: what the namespace demands is not asked for again.
  KillManager();
  Delete<kube::Job>("train-launcher");
  StartManager();
  EXPECT_TRUE(AwaitTrains(2));
}

TEST_F(HostilePods, ATrialOfNothingButAnImageRuns) {
  AddNode(2);
  Train(100, 2);
  CreateTrialJob(R"({"workload":{"podTemplate":{"spec":{"nodeSelector":{"grus.test/pool":")" + pool() +
                 R"("},"containers":[{"name":"train","image":"registry.test/train:1"}]}}},"space":{"gpuCounts":[1]}})");

  EXPECT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(api::TrialJobPhase::kSucceeded); }, seconds(180)))
      << ReadyMessage();
}

}  // namespace
}  // namespace grus::testing
