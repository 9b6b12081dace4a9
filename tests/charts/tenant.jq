# SPDX-License-Identifier: Apache-2.0
# For tenant_test.sh: small objects of each kind, to be changed. $a has what is team-a's: references to its objects.
def meta: {name: "x"};
def container: {name: "train", image: "train"};
def gpus($n): .spec.containers[0].resources.limits["nvidia.com/gpu"] = $n;
def gate: .spec.schedulingGates = [{name: "scheduling.x-k8s.io/gang"}];
def pod: {apiVersion: "v1", kind: "Pod", metadata: meta, spec: {terminationGracePeriodSeconds: 0, containers: [container]}};
def configmap: {apiVersion: "v1", kind: "ConfigMap", metadata: meta, data: {hosts: "x"}};
def service: {apiVersion: "v1", kind: "Service", metadata: meta, spec: {clusterIP: "None", selector: {app: "x"}}};
def batch: {apiVersion: "batch/v1", kind: "Job", metadata: meta,
  spec: {template: {spec: {restartPolicy: "Never", containers: [container]}}}};
def lease: {apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: meta,
  spec: {holderIdentity: "mallory", leaseDurationSeconds: 3600, renewTime: "2099-01-01T00:00:00.000000Z"}};
def group: {apiVersion: "scheduling.x-k8s.io/v1alpha1", kind: "PodGroup", metadata: meta, spec: {minMember: 1}};
def older: group | .apiVersion = "scheduling.sigs.k8s.io/v1alpha1";
def jobspec: {launcherSpec: {image: "train", pythonCommand: ["train"]},
  workersSpec: {image: "train", minReplicas: 1, maxReplicas: 1, gpusPerWorker: 0}};
def job: {apiVersion: "ai.centauruscloud.io/v1alpha1", kind: "ElasticHorovodJob", metadata: meta, spec: jobspec};
def measured: {apiVersion: "ai.centauruscloud.io/v1alpha1", kind: "TrialJob", metadata: meta,
  spec: {workload: {podTemplate: {spec: {containers: [container]}}}, space: {gpuCounts: [1]}, measure: {startupSeconds: 3600},
    budget: {perTrialSeconds: 7200}}};
def ofjob: measured | .spec.workload = {template: {spec: (jobspec | .workersSpec.gpusPerWorker = 1)}};
def ofref: measured | .spec.workload = {jobRef: {name: "none"}};
def queue: {apiVersion: "ai.centauruscloud.io/v1alpha1", kind: "GpuQueue", metadata: meta, spec: {}};
def pool: {apiVersion: "ai.centauruscloud.io/v1alpha1", kind: "NodePool", metadata: meta, spec: {}};
def profile: {apiVersion: "ai.centauruscloud.io/v1alpha1", kind: "WorkloadProfile", metadata: meta, spec: {fingerprint: "x"}};

# Makes an object of team-a its controller, or its owner only; beside, a real owner comes first.
def controlled($by): .metadata.ownerReferences += [$a[$by] + {controller: true}];
def owned($by): .metadata.ownerReferences += [$a[$by]];
def anchored: .metadata.ownerReferences += [$a.anchor];
def tag($key; $value): .metadata.labels[$key] = $value;
def note($key; $value): .metadata.annotations[$key] = $value;
def grus($key; $value): tag("ai.centauruscloud.io/" + $key; $value);
def ours: tag("app.kubernetes.io/managed-by"; "grus");
def worker($of): grus("job-name"; $of) | grus("role"; "worker") | ours;

# Words that try to be more than words.
def forged: "x\n{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"error\",\"message\":\"forged\"}\n";
def controls: "\u001b[2J\u001b]0;x\u0007\u0001\u009b\u202e\u2028\ufeff\r\n\t";
def formats: "%s%n{{ .Release }}${HOME}$(id)`id`{}{0}<script>";
def nested($n): reduce range($n) as $i ("x"; {a: .});
def abyss: "@abyss@";   # 1,000 levels, which jq would not print.
def text($n): "x" * $n;
