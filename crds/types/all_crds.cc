// SPDX-License-Identifier: Apache-2.0
#include "crds/types/all_crds.h"

#include "crds/types/elastic_horovod_job.h"
#include "crds/types/gpu_queue.h"
#include "crds/types/node_pool.h"
#include "crds/types/pod_group.h"
#include "crds/types/trial_job.h"
#include "crds/types/workload_profile.h"

namespace api {
namespace {

kube::CrdInfo ElasticHorovodJobCrd() {
  kube::CrdInfo crd;
  crd.kind = &ElasticHorovodJob::ResourceKind();
  crd.short_names = {"ehj"};
  crd.categories = {"grus", "all"};
  crd.doc =
      "ElasticHorovodJob runs an elastic Horovod training: one launcher, and workers whose number follows the "
      "free GPUs between a minimum and a maximum.";
  crd.scale = kube::ScalePaths{".spec.workersSpec.targetReplicas", ".status.availableReplicas", ".status.selector"};
  crd.printer_columns = {
      {"Phase", "string", ".status.phase", "What the job is doing."},
      {"Min", "integer", ".status.replicas.min", "Least number of workers."},
      {"Ready", "integer", ".status.replicas.ready", "Workers that are ready."},
      {"Max", "integer", ".status.replicas.max", "Largest number of workers."},
      {"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", "Why it is in this phase."},
      {"Progress", "string", ".status.progress.summary", "How far the training is."},
      {"ETA", "string", ".status.progress.eta", "When it is done, if it goes on like this."},
      {"Age", "date", ".metadata.creationTimestamp", "Time since it was created."},
      {"Wanted", "integer", ".status.replicas.wanted", "Workers asked for.", 1},
      {"Granted", "integer", ".status.replicas.granted", "Workers that may run now.", 1},
      {"Message", "string", ".status.conditions[?(@.type==\"Ready\")].message", "The phase in a sentence.", 1},
  };
  // The names of the children must be legal: a Service name, and labels of at most 63 characters.
  static constexpr kube::CelRule kNameRules[] = {
      {"size(self.metadata.name) <= 44",
       "metadata.name must have at most 44 characters, so that the names of the job's children are legal"},
      {"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
       "metadata.name must be lower case letters, digits and '-', and start with a letter: it becomes a host name"},
  };
  crd.cel.assign(std::begin(kNameRules), std::end(kNameRules));
  return crd;
}

kube::CrdInfo PodGroupCrd(const kube::Kind& kind) {
  kube::CrdInfo crd;
  crd.kind = &kind;
  crd.short_names = {"pg", "pgs"};
  crd.categories = {"grus", "all"};
  crd.doc =
      "PodGroup makes pods start together or not at all. Its members carry the label scheduling.x-k8s.io/pod-group "
      "with its name, and the scheduling gate scheduling.x-k8s.io/gang.";
  crd.printer_columns = {
      {"Phase", "string", ".status.phase", "What the gang is doing."},
      {"Min", "integer", ".spec.minMember", "Number of members that start together."},
      {"Scheduled", "integer", ".status.scheduled", "Members that have a node."},
      {"Running", "integer", ".status.running", "Members that run."},
      {"Succeeded", "integer", ".status.succeeded", "Members that succeeded."},
      {"Failed", "integer", ".status.failed", "Members that failed."},
      {"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", "Why it is in this phase."},
      {"Age", "date", ".metadata.creationTimestamp", "Time since it was created."},
      {"Message", "string", ".status.conditions[?(@.type==\"Ready\")].message", "The phase in a sentence.", 1},
  };
  return crd;
}

kube::CrdInfo TrialJobCrd() {
  kube::CrdInfo crd;
  crd.kind = &TrialJob::ResourceKind();
  crd.short_names = {"tj"};
  crd.categories = {"grus", "all"};
  crd.doc =
      "TrialJob runs a training briefly on several numbers and types of GPUs. Its status says how fast the training is "
      "on each, how fast it would be on more, and what to run it on.";
  crd.printer_columns = {
      {"Phase", "string", ".status.phase", "What the TrialJob is doing."},
      {"Progress", "string", ".status.progress", "Ended trials, and the number planned."},
      {"ETA", "string", ".status.eta", "When it is done, if it goes on like this."},
      {"Knee", "string", ".status.recommendation[?(@.goal==\"Knee\")].size",
       "Smallest number of GPUs with nine tenths of the highest throughput, their type, and x the batch size."},
      {"Speed-up", "string", ".status.recommendation[?(@.goal==\"Knee\")].speedUp",
       "Throughput at the knee, as a multiple of one GPU's."},
      {"Error", "string", ".status.model.looErrorPercent", "Leave-one-out error of the model, in percent."},
      {"Spent", "integer", ".status.spent.gpuSeconds", "GPU seconds that the trials have cost."},
      {"Age", "date", ".metadata.creationTimestamp", "Time since it was created."},
      {"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", "Why it is in this phase.", 1},
      {"Recommendation", "string", ".status.recommendation[?(@.goal==\"Knee\")].message", "The knee in a sentence.", 1},
      {"Fingerprint", "string", ".status.fingerprint", "The name of its WorkloadProfile.", 1},
      {"Latest", "string", ".status.etaLatest", "When it is done at the latest, unless trials wait for GPUs.", 1},
      {"Message", "string", ".status.conditions[?(@.type==\"Ready\")].message", "The phase in a sentence.", 1},
  };
  static constexpr kube::CelRule kRules[] = {
      {"size(self.metadata.name) <= 32",
       "metadata.name must have at most 32 characters, so that the names of the trials are valid"},
      {"self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
       "metadata.name must be lower case letters, digits and '-', and start with a letter: it becomes a host name"},
      // Kubernetes 1.36 compares pod templates, too, but no version promises it for opaque fields: the fingerprint
      // decides.
      {"!has(oldSelf.status) || !has(oldSelf.status.trials) || size(oldSelf.status.trials) == 0 || "
       "self.spec.workload == oldSelf.spec.workload",
       "spec.workload must not change once trials have begun: create a new TrialJob"},
  };
  crd.cel.assign(std::begin(kRules), std::end(kRules));
  return crd;
}

kube::CrdInfo WorkloadProfileCrd() {
  kube::CrdInfo crd;
  crd.kind = &WorkloadProfile::ResourceKind();
  crd.short_names = {"wp"};
  crd.categories = {"grus"};
  crd.doc = "WorkloadProfile keeps the measurements of one workload, for its namespace or for all.";
  crd.printer_columns = {
      {"GPU", "string", ".status.gpus", "GPU types with measurements."},
      {"Points", "integer", ".status.points", "Number of measurements."},
      {"Knee", "string", ".status.knee",
       "Smallest number of GPUs with nine tenths of the highest throughput, for each GPU type; \"8+\": 8, the largest "
       "size measured, or more."},
      {"Age", "date", ".metadata.creationTimestamp", "Time since it was created."},
      {"Image", "string", ".spec.workload.image", "Image of the workload.", 1},
  };
  static constexpr kube::CelRule kRules[] = {
      {"self.metadata.name == self.spec.fingerprint", "metadata.name must be spec.fingerprint"},
  };
  crd.cel.assign(std::begin(kRules), std::end(kRules));
  return crd;
}

kube::CrdInfo GpuQueueCrd() {
  kube::CrdInfo crd;
  crd.kind = &GpuQueue::ResourceKind();
  crd.short_names = {"gq"};
  crd.categories = {"grus"};
  crd.doc =
      "GpuQueue says how many GPUs the jobs of a team, or of several teams, may use: what is guaranteed to them, the "
      "most that they may use, and their weight where idle GPUs are shared. Jobs that are in no other queue are in the "
      "queue \"default\", which works without an object, too.";
  crd.printer_columns = {
      {"Parent", "string", ".spec.parent", "The queue above it."},
      {"Guaranteed", "integer", ".status.total.guaranteed", "GPUs that are guaranteed to it."},
      {"Used", "integer", ".status.total.used", "GPUs that its jobs hold."},
      {"Borrowed", "integer", ".status.total.borrowed", "GPUs that its jobs hold beyond its guarantee."},
      {"Waiting", "integer", ".status.total.waiting", "GPUs that its waiting jobs need to start."},
      {"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status", "Whether its jobs can start."},
      {"Age", "date", ".metadata.creationTimestamp", "Time since it was created."},
      {"Lent", "integer", ".status.total.lent", "GPUs of its unused guarantee that jobs of other queues hold.", 1},
      {"Running-Jobs", "integer", ".status.runningJobs", "Jobs that hold GPUs.", 1},
      {"Waiting-Jobs", "integer", ".status.waitingJobs", "Jobs that wait for their start.", 1},
      {"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", "Why it is ready or not.", 1},
      {"Message", "string", ".status.conditions[?(@.type==\"Ready\")].message", "The same in a sentence.", 1},
  };
  static constexpr kube::CelRule kRules[] = {
      {"size(self.metadata.name) <= 63",
       "metadata.name must have at most 63 characters, so that a label can name the queue"},
      // Longer cycles: the manager says so in the status.
      {"!has(self.spec.parent) || self.spec.parent != self.metadata.name",
       "spec.parent must not be the queue itself: name another queue, or none"},
  };
  crd.cel.assign(std::begin(kRules), std::end(kRules));
  return crd;
}

kube::CrdInfo NodePoolCrd() {
  kube::CrdInfo crd;
  crd.kind = &NodePool::ResourceKind();
  // "np" is taken: by the NodePools of HyperShift and OpenYurt.
  crd.short_names = {"npool"};
  crd.categories = {"grus"};
  crd.doc =
      "NodePool names a set of nodes with GPUs, for the quotas of GpuQueues. Nodes that no NodePool selects are the "
      "pool \"default\". Karpenter and others have a kind of the same name: where both are installed, write "
      "nodepools.ai.centauruscloud.io or npool for this one, and nodepools.karpenter.sh for the other.";
  crd.printer_columns = {
      {"Nodes", "integer", ".status.nodes", "Nodes of the pool."},
      {"GPUs", "integer", ".status.gpus", "Allocatable GPUs of these nodes."},
      {"Free", "integer", ".status.free", "GPUs that nobody holds, on nodes that are ready and not cordoned."},
      {"Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status", "Whether jobs can run there."},
      {"Age", "date", ".metadata.creationTimestamp", "Time since it was created."},
      {"Used", "integer", ".status.used", "GPUs that pods hold.", 1},
      {"Resource", "string", ".spec.resource", "The resource that counts as GPUs.", 1},
      {"Placement", "string", ".spec.placement", "Where small jobs go.", 1},
      {"Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", "Why it is ready or not.", 1},
      {"Message", "string", ".status.conditions[?(@.type==\"Ready\")].message", "The same in a sentence.", 1},
  };
  static constexpr kube::CelRule kRules[] = {
      {"size(self.metadata.name) <= 63",
       "metadata.name must have at most 63 characters, so that a GpuQueue can name the pool"},
      {"self.metadata.name != 'default'",
       "metadata.name must not be \"default\": that pool is the nodes that no NodePool selects; choose another name"},
  };
  crd.cel.assign(std::begin(kRules), std::end(kRules));
  return crd;
}

}  // namespace

std::vector<kube::CrdInfo> AllCrds() {
  kube::CrdInfo legacy = PodGroupCrd(LegacyPodGroup::ResourceKind());
  // The API server demands this annotation for groups that end in ".k8s.io".
  legacy.api_approval = "unapproved, serves the objects of the first versions of the coscheduling plugin";
  legacy.short_names = {};  // They are those of the newer group.
  return {ElasticHorovodJobCrd(), PodGroupCrd(PodGroup::ResourceKind()),
          std::move(legacy),      TrialJobCrd(),
          WorkloadProfileCrd(),   GpuQueueCrd(),
          NodePoolCrd()};
}

std::string CrdFile(std::string_view name) {
  const kube::Kind& older = LegacyPodGroup::ResourceKind();
  const bool is_older = name == std::string(older.plural).append(".").append(older.group);
  return std::string(is_older ? "../older/" : "").append(name).append(".yaml");
}

}  // namespace api
