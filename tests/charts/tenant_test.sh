#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hostile tenant: what somebody with Kubernetes' role edit in team-b can do to team-a through grus, on a real control
# plane with grus-manager as the chart's account. The API server refuses an attempt, or takes it; after each group of them
# team-a must be as it was, its secrets unknown, and served. Takes five minutes.
# Usage: tests/charts/tenant_test.sh [--flood]
#   --flood   also 10,000 objects, and many changes a second: ten minutes more, not among the suites; needs curl
# shellcheck disable=SC2016,SC2317 # Dollars of jq; check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=tenant
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
# shellcheck source=tests/charts/account.sh
source tests/charts/account.sh
# shellcheck source=tests/charts/tenant.sh
source tests/charts/tenant.sh
# shellcheck source=tests/charts/tenant_flood.sh
source tests/charts/tenant_flood.sh
# shellcheck source=tests/charts/tenant_usage.sh
source tests/charts/tenant_usage.sh

need "busybox" scripts/install-packages --real-node
trap 'stop_usage; clean_up' EXIT
start_usage
start_cluster 8 grus-system team-a team-b
need "helm install" "$helm" install grus "$chart" --namespace grus-system --timeout 60s \
  --set replicas=0,crds.olderPodGroups=true --values "$(usage_values)"
need "other kinds, which the operator lists" more_kinds
need "two queues, of 8 GPUs each" within 30 make_queues
need "mallory has the role edit in team-b" kube -n team-b create rolebinding mallory --clusterrole=edit --user=mallory
need "and may create jobs there" within 30 equals yes kube auth can-i create elastichorovodjobs -n team-b --as mallory
need "but nothing elsewhere" fails kube auth can-i list pods -n team-a --as mallory
need "the manager's account and arguments" start_as_account
launch
need "team-a has a job, a gang and a trial" make_team_a
need "they run" within 60 team_a_runs
need "and a job that waits for its queue" make_waiting_job
need "all of it is quiet" within 60 is_quiet
need "Prometheus knows what they use" serve_numbers
kinds_to_read
need "somebody of team-a reads the secret" test "$(secrets_for team-a)" -ge 6
need "and mallory reads team-b" canary
remember

# --- references to objects of team-a
# Mallory knows all names and UIDs. In team-b are objects of the same names, as owners must be in the object's namespace.
made "mallory's job has the name of team-a's" job train '.spec.runPolicy.suspend = true'
made "the trial, too" measured trial '.spec.suspend = true'
made "and the gang" group gang
made "something to be first owner" configmap anchor
reference() { reference_to "$(kube -n team-b get "$1" "$2" -o json)"; }
uids=$(jq -c ".anchor = $(reference configmap anchor)" <<<"$uids")
number=0
for owner in train trial gang launcher pod trialpod set; do
  for kind in pod job configmap service batch group measured older; do
    number=$((number + 1))
    case $((number % 3)) in
      0) made "a $kind is controlled by team-a's $owner" "$kind" "r$number" "controlled(\"$owner\")" ;;
      1) made "a $kind with an owner here is controlled by team-a's $owner" "$kind" "r$number" "anchored | controlled(\"$owner\")" ;;
      2) made "a $kind has team-a's $owner as first owner of two" "$kind" "r$number" "owned(\"$owner\") | anchored" ;;
    esac
  done
done
refused "a profile by a path" 'spec.profile in body should match' job profile2 '.spec.profile = "../../workloadprofiles/" + $a.profile'
refused "a profile by an address" 'spec.profile in body should match' job profile3 '.spec.profile = "http://127.0.0.1/"'
refused "a queue by a path" 'spec.queueName in body should match' job queue4 '.spec.queueName = "../vision"'
refused "two controllers" 'Only one reference can have Controller' pod r-two 'controlled("train") | controlled("trial")'
made_all <<'EOT'
a worker of a job of the same name, controlled by team-a's#pod#train-workers-0#worker("train") | controlled("train")
one more with the name of a worker and an owner here#pod#train-workers-1#worker("train") | anchored | controlled("train")
a pod with the name of team-a's trial, and its owner#pod#x#.metadata.name = $a.trialpod.name | grus("trial-job"; "trial") | controlled("trial")
a peer of team-a's trial, by its UID#pod#peer#grus("trial-job"; "trial") | controlled("trialpod")
a host list of team-a's job, by its UID#configmap#train-hosts#worker("train") | controlled("train")
a Service of team-a's job, by its UID#service#train-workers#worker("train") | controlled("train")
a launcher of team-a's job, by its UID#batch#train-launcher#worker("train") | controlled("train")
a gang of team-a's job, by its UID#group#train-x#controlled("train")
a trial of a job in another namespace#ofref#ref1#.spec.workload.jobRef.name = "team-a/train"
of one by a path#ofref#ref2#.spec.workload.jobRef.name = "../../team-a/elastichorovodjobs/train" | .spec.apply = "Apply"
of one by an escaped path#ofref#ref3#.spec.workload.jobRef.name = "..%2f..%2fteam-a%2felastichorovodjobs%2ftrain" | .spec.apply = "Apply"
of one by a query#ofref#ref4#.spec.workload.jobRef.name = "train?x=y#z" | .spec.apply = "Apply"
a trial of the job of the same name here#ofref#ref5#.spec.workload.jobRef.name = "train" | .spec.apply = "Apply"
a job with the profile of team-a#job#profile1#.spec.profile = $a.profile
a job with the workload of team-a#job#same#.spec = $a.spec
a trial with the workload of team-a#measured#same#.spec = $a.trialspec
a job in the queue of team-a#job#queue1#.spec.queueName = "vision"
a gang in the queue of team-a#group#queue2#grus("queue-name"; "vision")
a job of a class that is not preempted, in the queue of team-a#job#queue3#.spec.queueName = "vision" | .spec.workloadClass = "Interactive"
a job left to another controller#job#managed#.spec.runPolicy.managedBy = "example.com/" + "x" * 40
EOT
check "a job in the queue of team-a does not start" within 20 prints 'vision is not for namespace team-b' \
  kube -n team-b get ehj queue1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'
check "the trial by a path finds no job" within 20 equals JobNotFound reason_of tj/ref2
check "nor that by an escaped path" within 20 equals JobNotFound reason_of tj/ref3
check "the profile of team-a says nothing about mallory's job" fails prints "$marker" kube -n team-b get ehj profile1 -o yaml
all_is_well references

# --- the manager's hands: it may write in team-a, so it must not be led there
template=.spec.workersSpec.template
made_all <<EOT
workers whose template is of team-a#job#t1#$template.metadata.namespace = "team-a"
a launcher whose template is of team-a#job#t2#.spec.launcherSpec.template.metadata.namespace = "team-a"
a trial whose template is of team-a#measured#t3#.spec.workload.podTemplate.metadata.namespace = "team-a"
a trial of a job whose templates are of team-a#ofjob#t4#.spec.workload.template.spec.workersSpec.template.metadata.namespace = "team-a"
workers that are called as those of team-a#job#t5#$template.metadata |= {name: "train-workers-0", namespace: "team-a", uid: \$a.pod.uid}
workers that team-a's job controls#job#t6#$template.metadata.ownerReferences = [\$a.train + {controller: true}]
a launcher that team-a's job controls#job#t7#.spec.launcherSpec.template.metadata.ownerReferences = [\$a.train + {controller: true}]
a trial that team-a's trial controls#measured#t8#.spec.workload.podTemplate.metadata.ownerReferences = [\$a.trial + {controller: true}]
workers that say they are of team-a's job#job#t9#$template.metadata.labels |= {"ai.centauruscloud.io/job-name": "train"}
workers that say they are of team-a's gang#job#t10#$template.metadata.labels |= {"scheduling.x-k8s.io/pod-group": "gang"}
workers that were created with a lifted gate#job#t11#$template.metadata.annotations |= {"scheduling.ai.centauruscloud.io/lifted": "true"}
workers with a node of their own#job#t12#$template.spec |= {nodeName: "node-0"}
workers with another scheduler#job#t13#$template.spec |= {schedulerName: "mine"}
workers with finalizers#job#t14#$template.metadata.finalizers = ["example.com/never"]
workers of the kind Secret#job#t15#$template |= {apiVersion: "v1", kind: "Secret", spec: {}}
a trial of the kind ClusterRoleBinding#measured#t16#.spec.workload.podTemplate |= (.apiVersion = "rbac.authorization.k8s.io/v1" | .kind = "ClusterRoleBinding")
workers with the status of a pod that runs#job#t17#$template.status = {phase: "Running"}
workers with an account of grus#job#t18#$template.spec |= {serviceAccountName: "grus"}
workers with a Secret by a path#job#t19#$template.spec.volumes = [{name: "x", secret: {secretName: "../team-a/secret"}}]
a template that is a list#job#t20#$template.spec = ["x"]
containers that are none#job#t21#$template.spec.containers = {"name": "worker"}
labels that are a list#job#t22#$template.metadata.labels = ["x"]
a container without a name#job#t23#$template.spec.containers = [{}]
a node selector of another type#measured#t24#.spec.workload.podTemplate.spec.nodeSelector = [1] | .spec.space.gpuTypes = [{name: "x", nodeSelector: {a: "b"}}]
a batch size in place of a variable that the manager sets#ofjob#t25#.spec.space += {batchSizes: [1], batchSizeEnv: "LD_PRELOAD"}
a command that ends the script#job#t27#.spec.launcherSpec.pythonCommand = ["'; exit 0; '", "EOF\nEOF", "\$(id)"]
workers that keep everybody away#job#t28#$template.spec.affinity.podAntiAffinity = {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "none", namespaceSelector: {}, labelSelector: {}}]}
EOT
check "a pod of the workers' template is made, in team-b" within 30 prints t9-workers-0 kube -n team-b get pods -o name
check "a template of team-a makes pods in team-b" within 30 equals Training reason_of ehj/t1
check "and a trial" within 30 equals TrialsRunning reason_of tj/t3
all_is_well hands

# --- labels and annotations by which grus knows what is whose
node=$(kube -n team-a get pod train-workers-0 -o 'jsonpath={.spec.nodeName}')
made_all <<EOT
a worker of team-a's job, by labels#pod#l1#worker("train")
a launcher of team-a's job, by labels#pod#l2#worker("train") | grus("role"; "launcher")
a worker of a job with a slash#pod#l3#note("ai.centauruscloud.io/job-name"; "team-a/train") | worker("team-a.train")
a member of team-a's gang#pod#l4#tag("scheduling.x-k8s.io/pod-group"; "gang") | gate
one of the older kind#pod#l5#tag("pod-group.scheduling.sigs.k8s.io"; "gang") | gate
one of both#pod#l6#tag("scheduling.x-k8s.io/pod-group"; "gang") | tag("pod-group.scheduling.sigs.k8s.io"; "train") | gate
one without a gate#pod#l7#tag("scheduling.x-k8s.io/pod-group"; "gang")
a member of the gang of team-a's job#pod#l8#tag("scheduling.x-k8s.io/pod-group"; "train") | worker("train") | gate
a pod of team-a's trial#pod#l9#grus("trial-job"; "trial") | grus("trial"; \$a.trialpod.name)
an object that grus made, it says#configmap#l10#ours | grus("job-name"; "train")
a Service that grus made, it says#service#l11#ours | grus("job-name"; "train")
a Job that grus made, it says#batch#l12#ours | grus("job-name"; "train")
a pod of the test of nominations#pod#l13#grus("nomination-probe"; "held") | .spec.schedulingGates = [{name: "ai.centauruscloud.io/nomination-probe"}]
a gang of the plugin's older kind, of team-a's name#older#gang#.
a PodGroup of Kubernetes' own#pod#l14#.spec.workloadRef = {name: "gang", podGroup: "gang"} | .spec.schedulingGroup = {podGroupName: "gang"}
a pod that is first in the queue#pod#l15#note("scheduling.ai.centauruscloud.io/lifted"; "2000-01-01T00:00:00Z") | tag("scheduling.x-k8s.io/pod-group"; "gang") | gpus("1")
a pod nominated by another scheduler#pod#l16#note("scheduling.ai.centauruscloud.io/nominated-to"; "kube-scheduler/mallory") | tag("scheduling.x-k8s.io/pod-group"; "gang") | gate
a gang given up#group#l17#note("scheduling.ai.centauruscloud.io/given-up"; "2099-01-01T00:00:00Z")
a pod pinned to a node of team-a#pod#l18#note("scheduling.ai.centauruscloud.io/pinned-to"; "$node") | tag("scheduling.x-k8s.io/pod-group"; "gang") | gate
a pod that team-a's job must yield to#pod#l19#note("scheduling.ai.centauruscloud.io/preemption-deadline"; "2000-01-01T00:00:00Z") | worker("train")
a host list of others#configmap#l20#ours | note("ai.centauruscloud.io/published"; "2099-01-01T00:00:00Z") | note("ai.centauruscloud.io/hosts"; "train-workers-0.train-workers.team-a.svc:1")
a worker with its restarts#pod#l21#worker("train") | note("ai.centauruscloud.io/restarts"; "-9223372036854775808") | note("ai.centauruscloud.io/born-gated"; "true")
a trial of many pods#pod#l22#grus("trial-job"; "trial") | note("ai.centauruscloud.io/trial-pods"; "99999999999999999999")
a trial that was parked#pod#l23#grus("trial-job"; "trial") | note("ai.centauruscloud.io/trial-parked"; "true") | note("ai.centauruscloud.io/trial-seconds"; "-1") | note("ai.centauruscloud.io/trial-spent-gpu-seconds"; "1e99")
a speed that no GPU has#pod#l24#grus("trial-job"; "trial") | note("ai.centauruscloud.io/step-milliseconds"; "1e-308,nan,-inf") | note("ai.centauruscloud.io/samples-per-second"; "1e309")
a model and a dataset of team-a#job#l25#note("ai.centauruscloud.io/model"; "train") | note("ai.centauruscloud.io/pod-security"; "privileged")
a gang of an unknown class#group#l26#grus("workload-class"; "Emperor")
a pod that exempts itself#pod#l27#note("ai.centauruscloud.io/pod-security"; "privileged") | .spec.hostNetwork = true
EOT
refused "a job's name with a slash in a label" 'Invalid value' pod l-slash 'grus("job-name"; "team-a/train")'
refused "a gang's name with a slash in a label" 'Invalid value' pod l-slash 'tag("scheduling.x-k8s.io/pod-group"; "team-a/gang")'
check "a pod that names a gang is not started for team-a's" equals '' kube -n team-b get pod l18 -o 'jsonpath={.spec.nodeName}'
all_is_well labels

# --- statuses, and what is not of a namespace
made "a job of mallory's own" job own
made "a trial" measured own
made "a gang of the older kind" older own
made "a pod" pod own
made "and a Job" batch own
check "the job has a gang" within 20 mallory get podgroups.scheduling.x-k8s.io own
for kind in ehj tj podgroups.scheduling.x-k8s.io podgroups.scheduling.sigs.k8s.io pods jobs; do
  may_not "write a status: $kind" patch "$kind" own --subresource=status --type merge -p '{"status": {"phase": "Running"}}'
done
while read -r what; do
  # shellcheck disable=SC2086 # Several words.
  may_not "$what" $what
done <<'EOT'
-n team-a get ehj train
-n team-a get secret secret
-n team-a get configmap train-hosts
-n team-a delete ehj train
-n team-a scale ehj train --replicas=0
-n team-a patch ehj train --type=merge -p {"metadata":{"finalizers":["example.com/x"]}}
-n team-a delete pod train-workers-0
-n team-a logs train-workers-0
-n team-a create configmap x
-n grus-system create token grus
-n grus-system get lease grus
-n grus-system delete lease grus
-n kube-system patch lease kube-scheduler --type=merge -p {"spec":{"holderIdentity":"mallory"}}
-n kube-system create configmap sched-plugins-controllers
delete gpuqueue vision
patch gpuqueue speech --type=merge -p {"spec":{"quotas":[{"pool":"default","guaranteed":16}]}}
patch gpuqueue speech --subresource=status --type=merge -p {"status":{}}
delete nodepool default
get workloadprofile of-team-a
delete workloadprofile of-team-a
patch workloadprofile of-team-a --type=merge -p {"spec":{"points":[]}}
label namespace team-b kubernetes.io/metadata.name=team-a --overwrite
annotate namespace team-b a=b
label node node-0 example.com/pool=mine
create priorityclass mine --value=1000000000
create rolebinding mine --clusterrole=admin --user=mallory
create quota mine --hard=pods=1
EOT
refused "a queue of one's own" forbidden queue mine '.spec.quotas = [{pool: "default", guaranteed: 16}]'
refused "a pool of one's own" forbidden pool mine '.spec.nodeSelector = {a: "b"}'
refused "a profile of one's own" forbidden profile x
object lease sched-plugins-controllers >"$GRUS_STATE/lease"
may_not "create a lease in kube-system" -n kube-system create -f "$GRUS_STATE/lease"
made_all <<'EOT'
a lease of the scheduler, in team-b#lease#kube-scheduler#.
one of scheduler-plugins#lease#sched-plugins-controllers#.
and one of grus#lease#grus#.
a job with a status#job#status1#.status = {phase: "Running", replicas: {granted: 16, ready: 16}, usage: {gpuSeconds: -9223372036854775808}}
a gang with a status#group#status2#.status = {phase: "Running", scheduled: 1, running: 1}
a trial with a status#measured#status3#.spec.suspend = true | .status = {phase: "Succeeded", trials: [{name: "train-workers-0"}], recommendation: [{goal: "Knee", gpus: 0}]}
a job with finalizers#job#final1#.metadata.finalizers = ["example.com/never"]
a gang with finalizers#group#final2#.metadata.finalizers = ["example.com/never", "foregroundDeletion"]
EOT
check "no status is taken from its author" within 20 equals 1 kube -n team-b get ehj status1 -o 'jsonpath={.status.replicas.granted}'
check "nor from a trial's" equals '' kube -n team-b get tj status3 -o 'jsonpath={.status.recommendation}'
scale() { mallory patch ehj own --subresource=scale --type=merge -p "{\"spec\": {\"replicas\": $1}}" 2>&1; }
check "mallory scales a job to 10,000" fails scale 10000   # Over its maximum.
check "scales it below zero" prints 'nvalid\|does not exist' scale -1
check "a deleted job keeps its finalizer" mallory delete ehj final1 --wait=false
check "an event about a job of team-a is refused" prints 'does not match\|forbidden' mallory create -f - <<END
{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "false"}, "reason": "NameTaken", "message": "give it up", "type": "Warning",
 "involvedObject": {"apiVersion": "ai.centauruscloud.io/v1alpha1", "kind": "ElasticHorovodJob", "namespace": "team-a", "name": "train"}}
END
all_is_well statuses

# --- resources: amounts that there are not
huge=9223372036854775807
made_all <<EOT
a pod of 2^63-1 GPUs#pod#p1#gpus("$huge")
one on a node of team-a#pod#p2#gpus("$huge") | .spec.nodeName = "$node"
another one there, so that their sum is negative#pod#p3#gpus("$huge") | .spec.nodeName = "$node"
many containers whose sum is over#pod#p4#.spec.containers = [range(5) | {name: "c\(.)", image: "x", resources: {limits: {"nvidia.com/gpu": "4611686018427387904"}}}] | .spec.nodeName = "$node"
init containers whose sum is over#pod#p5#.spec.initContainers = [range(3) | {name: "i\(.)", image: "x", restartPolicy: "Always", resources: {limits: {"nvidia.com/gpu": "$huge"}}}] | .spec.nodeName = "$node"
processors and memory without end#pod#p6#.spec.containers[0].resources.requests = {cpu: "$huge", memory: "8191Pi"} | .spec.nodeName = "$node"
amounts with exponents#pod#p7#.spec.containers[0].resources.requests = {cpu: "1e18", memory: "1e-3", "nvidia.com/gpu": "9e18"} | .spec.containers[0].resources.limits = {"nvidia.com/gpu": "9e18"}
amounts of a pod#pod#p8#.spec.resources = {requests: {cpu: "$huge"}}
GPUs of another vendor#pod#p9#.spec.containers[0].resources.limits = {"amd.com/gpu": "$huge"} | .spec.nodeName = "$node"
a hundred resources#pod#p10#.spec.containers[0].resources.limits = ([range(100) | {key: "example.com/r\(.)", value: "$huge"}] | from_entries)
a pod on a node that does not exist#pod#p11#gpus("8") | .spec.nodeName = "nowhere"
one with gates of others#pod#p12#gpus("8") | .spec.schedulingGates = [{name: "example.com/gate"}, {name: "scheduling.x-k8s.io/gang"}]
one with the gate and no gang#pod#p13#gpus("8") | gate
one that ends no sooner than in 292 years#pod#p14#.spec.terminationGracePeriodSeconds = 9223372036854774784 | .spec.activeDeadlineSeconds = 2147483647
one of another scheduler#pod#p15#gpus("8") | .spec.schedulerName = "mallory"
a claim of devices that does not exist#pod#p16#.spec.resourceClaims = [{name: "x", resourceClaimName: "team-a"}]
a gang of 100,000#group#g1#.spec.minMember = 100000
with resources without end#group#g2#.spec.minResources = {"nvidia.com/gpu": "$huge", cpu: "-1"}
a gang that is started at once#group#g3#.spec.whenUnschedulable = "Ungate" | .spec.minMember = 100
a member of it for all GPUs#pod#p17#gpus("8") | gate | tag("scheduling.x-k8s.io/pod-group"; "g3")
a job of 10,000 workers with 64 GPUs each#job#j1#.spec.workersSpec += {minReplicas: 10000, maxReplicas: 10000, gpusPerWorker: 64}
workers of 2^63-1 GPUs#job#j2#.spec.workersSpec += {gpusPerWorker: 1} | $template.spec.containers = [{name: "worker", resources: {limits: {"nvidia.com/gpu": "$huge"}}}]
workers of negative GPUs#job#j3#$template.spec.containers = [{name: "worker", resources: {limits: {"nvidia.com/gpu": "-8"}}}]
workers of half a GPU#job#j4#$template.spec.containers = [{name: "worker", resources: {limits: {"nvidia.com/gpu": "500m"}}}]
workers of another vendor's GPUs#job#j5#$template.spec.containers = [{name: "worker", resources: {limits: {"amd.com/gpu": "$huge"}}}]
workers whose GPUs are no number#job#j6#$template.spec.containers = [{name: "worker", resources: {limits: {"nvidia.com/gpu": {"a": 1}}}}]
a job of a class of priority that does not exist#job#j7#.spec.priorityClassName = "emperor"
a job of the cluster's highest priority, for all GPUs#job#j8#.spec.priorityClassName = "system-node-critical" | .spec.workersSpec += {minReplicas: 16, maxReplicas: 16, gpusPerWorker: 1}
one that is not preempted#job#j9#.spec.workloadClass = "Inference" | .spec.workersSpec += {minReplicas: 9, maxReplicas: 9, gpusPerWorker: 1}
a trial of as many GPUs as there may be#measured#m1#.spec.space.gpuCounts = [1024]
a launcher that asks for all GPUs#job#j10#.spec.launcherSpec.template.spec.containers = [{name: "launcher", resources: {limits: {"nvidia.com/gpu": "16"}}}]
EOT
refused_all <<EOT
negative GPUs of a pod#greater than or equal to 0#pod#gpus("-1")
half a GPU of a pod#must be an integer#pod#gpus("500m")
a priority without a class#priority#pod#.spec.priority = 2000000000
a class that does not exist#no PriorityClass#pod#.spec.priorityClassName = "emperor"
a PreemptionPolicy without a class#reempt#pod#.spec.preemptionPolicy = "Sometimes"
a gang of no members#minMember#group#.spec.minMember = 0
a gang of a negative number#minMember#group#.spec.minMember = -2147483648
of more than fits#minMember#group#.spec.minMember = 4294967297
workers below zero#minReplicas#job#.spec.workersSpec.minReplicas = -1
more than 10,000 workers#Replicas#job#.spec.workersSpec.maxReplicas = 2147483647
65 GPUs of a worker#gpusPerWorker#job#.spec.workersSpec.gpusPerWorker = 65
GPUs of a worker below zero#gpusPerWorker#job#.spec.workersSpec.gpusPerWorker = -1
a number of GPUs below one#gpuCounts#measured#.spec.space.gpuCounts = [-1]
one that is too large#gpuCounts#measured#.spec.space.gpuCounts = [2147483647]
a batch below one#batchSizes#measured#.spec.space.batchSizes = [-64]
a budget below zero#budget#measured#.spec.budget.gpuSeconds = -1
trials without end#maxTrials#measured#.spec.strategy.maxTrials = 100000
a price that is no number#pricePerHour#measured#.spec.space.gpuTypes = [{name: "x", pricePerHour: "-1e999"}]
a deadline below zero#activeDeadlineSeconds#job#.spec.runPolicy.activeDeadlineSeconds = -5
EOT
check "no job of mallory's has more than the queue" equals '' \
  kube -n team-b get ehj j1 j8 j9 -o 'jsonpath={.items[?(@.status.replicas.granted>8)].metadata.name}'
check "team-b uses no more than its 8 GPUs by jobs" test "$(jobs_gpus)" -le 8
all_is_well resources

# --- texts
made_all <<'EOT'
a line of a log in a command#job#x1#.spec.launcherSpec.pythonCommand = [forged]
in an image#job#x2#.spec.workersSpec.image = forged
in an image of a pod#measured#x3#.spec.workload.podTemplate.spec.containers[0].image = forged
in the name of a class of priority#job#x5#.spec.priorityClassName = forged
in the name of another controller#job#x7#.spec.runPolicy.managedBy = (forged | .[:60])
in the name of the job of a trial#ofref#x8#.spec.workload.jobRef.name = forged
in a node selector#job#x10#.spec.workersSpec.template.spec.nodeSelector = {"kubernetes.io/hostname": forged}
in a container's name#job#x11#.spec.workersSpec.template.spec.containers = [{name: forged}]
in a gate's name#job#x12#.spec.workersSpec.template.spec.schedulingGates = [{name: forged}]
in annotations that grus reads#job#x13#note("ai.centauruscloud.io/model"; forged) | note("ai.centauruscloud.io/dataset"; controls)
in annotations of a gang#group#x14#note("scheduling.ai.centauruscloud.io/given-up"; forged)
in an account#job#x15#.spec.workersSpec.template.spec.serviceAccountName = forged
in a volume's claim#job#x16#.spec.workersSpec.template.spec.volumes = [{name: "v", persistentVolumeClaim: {claimName: forged}}]
in a key of the template#job#x17#.spec.workersSpec.template.spec[forged] = controls
what commands a terminal#job#x18#.spec.launcherSpec.pythonCommand = [controls] | .spec.priorityClassName = controls
what looks like a template#job#x19#.spec.launcherSpec.pythonCommand = [formats] | .spec.priorityClassName = formats
in a trial's image#measured#x20#.spec.workload.podTemplate.spec.containers[0].image = formats
letters of all kinds#job#x21#.spec.priorityClassName = "\u0000é漢😀\u202e" * 20
240 kB of annotations#job#x22#note("a"; text(240000))
240 kB of annotations of a gang#group#x23#note("a"; text(240000))
10,000 annotations#group#x24#.metadata.annotations = ([range(10000) | {key: "a/\(.)", value: "b"}] | from_entries)
a template of 90 levels#job#x25#.spec.workersSpec.template.spec.x = nested(90)
a template of 1,000 levels#job#x26#.spec.workersSpec.template.spec.x = abyss
a trial of 1,000 levels#measured#x27#.spec.workload.podTemplate.spec.x = abyss
a template of 1 MB#job#x28#.spec.workersSpec.template.metadata.annotations = {a: text(1000000)}
a trial of 1 MB#measured#x29#.spec.workload.podTemplate.spec.x = text(1000000)
a template of 200,000 numbers#measured#x30#.spec.workload.podTemplate.spec.x = [range(200000) | 1]
10,000 containers#job#x31#.spec.workersSpec.template.spec.containers = [range(10000) | {name: "c\(.)", image: "x"}]
10,000 variables#job#x32#.spec.workersSpec.template.spec.containers = [{name: "worker", env: [range(10000) | {name: "V\(.)", value: "x"}]}]
numbers beyond those of a machine#measured#x33#.spec.workload.podTemplate.spec.x = [1e308, -1e308, 12345678901234567890123, 1e-320]
EOT
refused_all <<'EOT'
a line of a log in the name of a GPU type#gpuTypes#measured#.spec.space.gpuTypes = [{name: forged[:60]}]
a line of a log in the name of a queue#spec.queueName in body should match#job#.spec.queueName = forged
what commands a terminal in it#spec.queueName in body should match#job#.spec.queueName = controls
a line of a log in the name of a profile#spec.profile in body should match#job#.spec.profile = forged
a command in an option#batchSizeOption#measured#.spec.space += {batchSizes: [1], batchSizeOption: "; kubectl delete ehj --all -n team-a #"}
EOT
check "what cannot be read is said in the log" within 20 prints 'an object cannot be read' cat "$log"
check "a job with a forged class says why it does not start" within 20 equals TemplateRefused reason_of ehj/x5
all_is_well texts

# --- where speeds come from
not_listed='prometheus-servers'
made_all <<'EOT'
a password in an address#measured#s0#.spec.measure = {source: "Prometheus", prometheus: {url: "http://u:p@127.0.0.1:9/", queries: [{kind: "Step", query: "up"}]}}
a server of one's own#measured#s1#.spec.measure = {source: "Prometheus", prometheus: {url: "http://127.0.0.1:9/", queries: [{kind: "Step", query: "up"}]}}
the cloud's metadata#measured#s2#.spec.measure = {source: "Prometheus", prometheus: {url: "http://169.254.169.254/latest/meta-data", queries: [{kind: "Step", query: "up"}]}}
the API server#measured#s3#.spec.measure = {source: "Prometheus", prometheus: {url: "https://kubernetes.default.svc/api/v1/secrets", queries: [{kind: "Step", query: "up"}]}}
a query with more than a query#measured#s4#.spec.measure = {source: "Prometheus", prometheus: {url: "http://127.0.0.1:9", queries: [{kind: "Step", query: "up\u0026x=y#\r\nHost: x"}]}}
a pattern that backtracks#measured#s5#.spec.measure.patterns = [{name: "x", kind: "Step", regex: "(a+)+$"}]
nested repeats#measured#s6#.spec.measure.patterns = [{name: "x", kind: "Step", regex: "((((\\d{1,1000}){1,1000}){1,1000}){1,1000})"}]
a pattern that is none#measured#s7#.spec.measure.patterns = [{name: "x", kind: "Step", regex: "(["}]
back references#measured#s8#.spec.measure.patterns = [{name: "x", kind: "Step", regex: "(\\d+)\\1(?=x)"}]
a pattern of what is not text#measured#s9#.spec.measure.patterns = [{name: "x", kind: "Step", regex: "\\C*(\\d+)\\x{10FFFF}\\pN\\z"}]
speeds that are pushed#measured#s10#.spec.measure.source = "Push"
an image by an address#measured#s11#.spec.workload.podTemplate.spec.containers[0].image = "http://127.0.0.1/../../x@sha256:" + "0" * 64
an image of another team's registry#job#s12#.spec.workersSpec.image = "registry.team-a.svc:5000/train:latest"
the same workload as team-a, measured again#measured#s13#.spec = $a.trialspec | .spec.cache.policy = "Refresh"
EOT
refused_all <<'EOT'
a file as a server#url#measured#.spec.measure = {source: "Prometheus", prometheus: {url: "file:///var/run/secrets/token", queries: [{kind: "Step", query: "up"}]}}
an address of another protocol#url#measured#.spec.measure = {source: "Prometheus", prometheus: {url: "gopher://x", queries: [{kind: "Step", query: "up"}]}}
a pattern without end#regex#measured#.spec.measure.patterns = [{name: "x", kind: "Step", regex: text(100000)}]
a thousand patterns#patterns#measured#.spec.measure.patterns = [range(1000) | {name: "x\(.)", kind: "Step", regex: "(x)"}]
a variable that is none#batchSizeEnv#measured#.spec.space += {batchSizes: [1], batchSizeEnv: "A=B\nC"}
EOT
check "a server that is not listed is not asked" within 30 prints "$not_listed" kube -n team-b get tj s1 -o yaml
check "nor the cloud's" within 30 prints "$not_listed" kube -n team-b get tj s2 -o yaml
check "nor the API server" within 30 prints "$not_listed" kube -n team-b get tj s3 -o yaml
all_is_well sources

# --- names
long=$(printf 'x%.0s' {1..253})
made_all <<EOT
a pod where the job will have its first worker#pod#col-workers-0#.
a Service where it will have its own#service#col-workers#.
a host list where it will have it#configmap#col-hosts#.
a Job where it will have its launcher#batch#col-launcher#.
a gang where it will have its own#group#col#.
the job#job#col#.
a job that is called as its launcher#job#col-launcher#.
one as its workers#job#col-workers#.
one as a worker#job#col-workers-0#.
a gang with the name of team-a's trial#group#x#.metadata.name = \$a.trialpod.name
a job of that name#job#x#.metadata.name = \$a.trialpod.name
the longest name of a job#job#x#.metadata.name = "${long:0:44}"
the longest of a trial#measured#x#.metadata.name = "${long:0:32}"
the longest of a gang#group#x#.metadata.name = "$long"
a gang with the name of a namespace and a job#group#team-a.train#.
a member of it#pod#dots.a#tag("scheduling.x-k8s.io/pod-group"; "team-a.train") | gate
a gang with the name of the older kind#group#scheduling.sigs.k8s.io#.
a job called grus#job#grus#.
one called kubernetes#job#kubernetes#.
a trial called as the job#measured#col#.
EOT
refused_all <<EOT
a job with a longer name#44#job#.metadata.name = "${long:0:45}"
a trial with a longer name#32#measured#.metadata.name = "${long:0:33}"
a job with dots in its name#host name#job#.metadata.name = "team-a.train"
a job with a slash in its name#Invalid value#job#.metadata.name = "team-a/train"
a job with a path as its name#Invalid value\|invalid#job#.metadata.name = ".."
a job of another namespace#does not match#job#.metadata.namespace = "team-a"
a job with an escape in its name#Invalid value\|invalid#job#.metadata.name = "a%2fb"
EOT
check "the job says that its names are taken" within 20 prints 'NameTaken' reason_of ehj/col
check "what was there stays" equals x kube -n team-b get configmap col-hosts -o 'jsonpath={.data.hosts}'
all_is_well names

# --- objects that are wide, and change all the time. While sums of resources were quadratic, no other job was looked at
# in a minute; how long it takes on a quiet machine is no matter of this test.
wide='([range(30000) | {key: "a.b/r\(.)", value: "1"}] | from_entries)'
made "a pod of 30,000 resources" pod wide-waits ".spec.containers[0].resources.limits = $wide"
made "another one, on a node" pod wide-runs ".spec.containers[0].resources.limits = $wide | .spec.nodeName = \"node-0\""
made "a job of 30,000 resources" job wide ".spec.workersSpec.template.spec.containers = [{name: \"worker\", resources: {limits: $wide}}]"
keep_changing() {
  local number
  for number in {1..60}; do
    mallory annotate --overwrite pod wide-waits "tried=$number"
    mallory label --overwrite pod wide-runs "tried=$number"
    mallory patch ehj wide --type=merge -p "{\"spec\": {\"runPolicy\": {\"backoffLimit\": $number}}}"
  done
}
keep_changing >/dev/null &
changing=$!
has_status() { equals 1 kube -n team-a get ehj "$1" -o 'jsonpath={.status.observedGeneration}'; }
for number in 1 2 3; do
  check "team-a's job $number is made" eval "object job tried-beside-$number | kube -n team-a create -f -"
  since=$SECONDS
  check "and looked at meanwhile" within 30 has_status "tried-beside-$number"
  echo "      after $((SECONDS - since)) s"
done
check "the wide objects still changed then" kill -0 "$changing"
kill "$changing"
wait "$changing" 2>/dev/null
check "the jobs go" kube -n team-a delete ehj tried-beside-1 tried-beside-2 tried-beside-3
check "and the wide ones" mallory delete pod/wide-waits pod/wide-runs ehj/wide --wait=false
all_is_well width

# --- what jobs use, with Alnair's annotations
usage_attacks

# --- a manager that starts, among all of it
made_all <<'EOT'
again a template of 1,000 levels#job#x26#.spec.workersSpec.template.spec.x = abyss
a trial of 1,000 levels#measured#x27#.spec.workload.podTemplate.spec.x = abyss
a trial of 1 MB#measured#x29#.spec.workload.podTemplate.spec.x = text(1000000)
a pod of 2^63-1 GPUs#pod#p1#gpus("9223372036854775807")
a worker of team-a's job, by labels#pod#l1#worker("train") | .spec.nodeName = "node-0"
a host list of team-a's job, by its UID#configmap#train-hosts#ours | worker("train") | controlled("train") | anchored
a forged line#job#x5#.spec.priorityClassName = forged
a lease of grus#lease#grus#.
a job of team-a's name#job#train#.spec.runPolicy.suspend = true
EOT
kill -KILL "$manager_pid"
wait "$manager_pid" 2>/dev/null
log=$GRUS_STATE/second.log
launch
started=$(process)
check "another manager leads" within 60 grep 'became leader' "$log"
all_is_well restart

[[ ${1:-} != --flood ]] || run_flood

finish
