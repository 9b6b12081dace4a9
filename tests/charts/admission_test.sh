#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The chart's admissionPolicy on a real control plane: whom it asks for what, and whom it leaves alone. Takes a minute.
# shellcheck disable=SC2016,SC2317 # Dollars of jq; check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=admission
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
# shellcheck source=tests/charts/account.sh
source tests/charts/account.sh

trainer_pid=
trap '[[ -z $trainer_pid ]] || kill "$trainer_pid" 2>/dev/null; clean_up' EXIT

start_cluster 8 grus-system team-a team-b
need "helm install" "$helm" install grus "$chart" --namespace grus-system --timeout 60s --set admissionPolicy.enabled=true
need "its kinds are served" within 30 kube get elastichorovodjobs,trialjobs -A
# The editor has Kubernetes' role. The author may write jobs and trials, but create no pods. The trainer may also create
# pods, and act as the account trainer, but not as the account other.
for namespace in team-a team-b; do
  need "a role for the jobs of $namespace" within 30 kube -n "$namespace" create role jobs --verb=get,list,create,update,patch,delete \
    --resource=elastichorovodjobs.ai.centauruscloud.io,trialjobs.ai.centauruscloud.io \
    --resource=elastichorovodjobs.ai.centauruscloud.io/scale,elastichorovodjobs.ai.centauruscloud.io/status
  kube -n "$namespace" create rolebinding jobs --role=jobs --user=author --user=trainer >/dev/null
done
for account in trainer other; do kube -n team-a create serviceaccount "$account" >/dev/null; done
kube -n team-a create role pods --verb=create --resource=pods >/dev/null
kube -n team-a create rolebinding pods --role=pods --user=trainer >/dev/null
kube -n team-a create role act --verb=impersonate --resource=serviceaccounts --resource-name=trainer >/dev/null
kube -n team-a create rolebinding act --role=act --user=trainer >/dev/null
kube -n team-a create rolebinding editor --clusterrole=edit --user=editor >/dev/null

# example OBJECT [JQ]: a job, a trial of a job, a trial of a pod, or one of a job that exists, changed.
example() {
  local file=$1
  case $1 in
    job) file=elastic-bert/job ;;
    trial) file=trial/keras ;;
    pods) file=trial/pod ;;
    ref) file=trial/pytorch ;;
  esac
  kube create --dry-run=client -f "examples/$file.yaml" -o json |
    jq "select(\"$1\" == \"job\" or .kind == \"TrialJob\") | del(.metadata.namespace) | ${2:-.}"
}
team=team-a
as() { kube --as "$1" -n "$team" "${@:2}"; }   # as USER COMMAND...
# admitted HOW USER OBJECT [JQ]: creates it or applies it, and keeps nothing.
admitted() {
  local how
  read -ra how <<<"$1"
  example "$3" "${4:-.}" | as "$2" "${how[@]}" --dry-run=server -f -
}
made() { example "$2" "$3" | as "$1" create -f -; }   # made USER OBJECT JQ
pods='may not create pods in namespace'

check "the policy comes into force" within 30 prints "ElasticHorovodJob team-a/elastic-bert: .*\"author\" $pods team-a" \
  admitted create author job
check "for trials too" within 30 prints "TrialJob team-a/vit: .*\"author\" $pods team-a" admitted create author pods
check "the API server understands all of it" equals '{} {} ' \
  kube get validatingadmissionpolicies -o 'jsonpath={range .items[*]}{.status.typeChecking}{" "}{end}'

# --- what is asked of whom: by the paths of the accounts that are named
template=.spec.workload.template.spec
while IFS='#' read -r object user change field; do
  for how in create 'apply --server-side'; do
    if [[ -z $field ]]; then
      check "$how: the $user's $object: ${change:-no account}" admitted "$how" "$user" "$object" "$change"
    else
      check "$how: refused is the $user's $object: ${change:-no account}" prints "denied request: .*$field" \
        admitted "$how" "$user" "$object" "$change"
    fi
  done
done <<EOT
job#editor##
job#editor#.spec.workersSpec.template.spec.serviceAccountName = "other"#
trial#editor#$template.launcherSpec.template.spec.serviceAccountName = "other"#
pods#editor#.spec.workload.podTemplate.spec.serviceAccountName = "other"#
job#author##$pods
trial#author##$pods
pods#author##$pods
ref#author##$pods
job#trainer##
trial#trainer##
pods#trainer##
ref#trainer##
job#trainer#.spec.workersSpec.template.spec.serviceAccountName = "trainer"#
job#trainer#.spec.launcherSpec.template.spec.serviceAccountName = "trainer"#
trial#trainer#$template.workersSpec.template.spec.serviceAccountName = "trainer"#
pods#trainer#.spec.workload.podTemplate.spec.serviceAccountName = "trainer"#
job#trainer#.spec.workersSpec.template.spec.serviceAccountName = "default"#
job#trainer#.spec.workersSpec.template.spec.serviceAccountName = "other"#spec.workersSpec.template names the service account other
job#trainer#.spec.launcherSpec.template.spec.serviceAccountName = "other"#spec.launcherSpec.template names the service account other
job#trainer#.spec.workersSpec.template.spec.serviceAccount = "other"#spec.workersSpec.template names the service account other
job#trainer#.spec.workersSpec.template.spec += {serviceAccountName: null, serviceAccount: "other"}#the service account other
job#trainer#.spec.workersSpec.template.spec += {serviceAccountName: "", serviceAccount: "other"}#the service account other
job#trainer#.spec.workersSpec.template.spec += {serviceAccountName: "trainer", serviceAccount: "other"}#
job#trainer#.spec.workersSpec.template.spec.serviceAccountName = "trainer" | .spec.launcherSpec.template.spec.serviceAccountName = "other"#spec.launcherSpec.template names the service account other
trial#trainer#$template.workersSpec.template.spec.serviceAccountName = "other"#spec.workload.template.spec.workersSpec.template names
trial#trainer#$template.launcherSpec.template.spec.serviceAccountName = "other"#spec.workload.template.spec.launcherSpec.template names
pods#trainer#.spec.workload.podTemplate.spec.serviceAccountName = "other"#spec.workload.podTemplate names the service account other
pods#trainer#.spec.workload.podTemplate.spec.serviceAccount = "other"#spec.workload.podTemplate names the service account other
EOT
check "the message says what to do" prints 'a role there with the verb impersonate on serviceaccounts/other' \
  admitted create trainer job '.spec.workersSpec.template.spec.serviceAccountName = "other"'
check "a template that is none is no way around" fails \
  admitted 'create --validate=false' trainer job '.spec.workersSpec.template.spec = [{"serviceAccountName": "other"}]'
check "a generated name is a name" prints "ElasticHorovodJob team-a/bert-[a-z0-9]*: .*$pods" \
  admitted create author job 'del(.metadata.name) | .metadata.generateName = "bert-"'

# --- updates: of the spec only
ehj=ehj/elastic-bert
change() { as "$1" patch "$ehj" --type merge -p "$2"; }   # change USER PATCH
account() { printf '{"spec": {"workersSpec": {"template": {"spec": {"serviceAccountName": %s}}}}}' "$1"; }
larger='{"spec": {"workersSpec": {"maxReplicas": 50}}}'
stored() { kube -n team-a get "$ehj" -o json | jq "$1"; }
rewritten() { stored "$1" | as author "${@:2}" -f -; }   # rewritten JQ COMMAND...: by the author.
apply=(apply --server-side --force-conflicts)
its='{apiVersion, kind, metadata: {name: .metadata.name, labels: {a: "c"}}, spec}'
check "the editor makes a job with the account other" \
  made editor job '.spec.workersSpec.template.spec.serviceAccountName = "other"'
check "the author labels it" as author label "$ehj" a=b
check "gives it a finalizer" change author '{"metadata": {"finalizers": ["example.com/wait"]}}'
check "takes it away" change author '{"metadata": {"finalizers": []}}'
check "writes it back as it is" rewritten . replace
check "applies a label on the server" rewritten "$its" "${apply[@]}"
check "scales it" as author scale "$ehj" --replicas=20
check "and writes its status" as author patch "$ehj" --subresource=status --type merge -p '{"status": {"message": "x"}}'
check "but changes no spec" prints "$pods" change author "$larger"
check "nor replaces it" prints "$pods" rewritten '.spec.workersSpec.maxReplicas = 50' replace
check "nor applies it" prints "$pods" rewritten "$its | .spec.workersSpec.maxReplicas = 50" "${apply[@]}"
check "nobody changes what runs as an account that they may not act as" prints 'the service account other' change trainer "$larger"
check "who may do that does" change editor "$larger"
check "one's own account can take its place" change trainer "$(account '"trainer"')"
check "and none" change trainer "$(account null)"
check "but not the other again" prints 'the service account other' change trainer "$(account '"other"')"
owner=$(kube -n team-a get role jobs -o jsonpath='{.metadata.uid}')
owner='{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": "jobs", "uid": "'$owner'"}'
check "a job gets an owner" change author '{"metadata": {"ownerReferences": ['"$owner"']}}'
collector=system:serviceaccount:kube-system:generic-garbage-collector
check "the garbage collector makes it an orphan" change "$collector" '{"metadata": {"ownerReferences": null}}'
check "so that it has no owner" equals null stored .metadata.ownerReferences
check "it may not create pods" prints "$pods" change "$collector" '{"spec": {"workersSpec": {"maxReplicas": 60}}}'
check "who may delete jobs needs no more" as author delete "$ehj"

# --- the manager, with the chart's account and the arguments of its Deployment
log=$GRUS_STATE/manager.log
need "the manager's account" account_kubeconfig "$KUBECONFIG" grus-system "$GRUS_STATE/account"
mapfile -t args < <(deployment_arguments grus-system)
env -u KUBECONFIG "$manager" --kubeconfig "$GRUS_STATE/account" "${args[@]}" >"$log" 2>&1 &
manager_pid=$!
scripts/demo-trainer "$cluster_name" >"$GRUS_STATE/trainer.log" 2>&1 &
trainer_pid=$!
one='.spec.space.gpuCounts = [2] | .spec.space.batchSizes = [64]'
check "the trainer makes a TrialJob with the account trainer" \
  made trainer trial "$one | $template.workersSpec.template.spec.serviceAccountName = \"trainer\""
check "and one of pods" made trainer pods "$one | .spec.workload.podTemplate.spec.serviceAccountName = \"trainer\""
pods_of() { kube -n team-a get pods -l "$1" -o 'jsonpath={.items[*].spec.serviceAccountName}'; }
check "the manager makes its job, and pods with the account" within 60 prints '^trainer' pods_of ai.centauruscloud.io/role=worker
check "the pods of the other, too" within 60 prints '^trainer' pods_of ai.centauruscloud.io/trial-job=vit
check "the trial of the job is measured" kube -n team-a wait tj/mnist --for=condition=Complete --timeout=120s
check "nothing says that the manager was refused" fails prints 'denied request\|NotPermitted' \
  kube -n team-a get trialjobs,elastichorovodjobs,events.events.k8s.io -o yaml
check "nor does its log" fails grep -m 3 -i forbidden "$log"
((failed == 0)) || tail -n 5 "$log" | sed 's/^/      log: /'
# It alone: an account beside it, with all of its rights, is asked like everybody.
kube -n grus-system create serviceaccount beside >/dev/null
beside=system:serviceaccount:grus-system:beside
kube create clusterrolebinding beside --clusterrole=grus-system:grus --serviceaccount=grus-system:beside >/dev/null
check "another account of its namespace, with its rights, makes jobs" admitted create "$beside" job
check "but acts as no account" prints "user \"$beside\" may not act as it" \
  admitted create "$beside" job '.spec.workersSpec.template.spec.serviceAccountName = "trainer"'

# --- only where grus is, and only when asked for
set_value() { "$helm" upgrade grus "$chart" --namespace grus-system --reuse-values --set "$1"; }
check "grus for one namespace" set_value 'namespaces={team-b}'
check "is of no concern to others" within 30 admitted create author job
team=team-b
check "it asks there" prints "$pods team-b" admitted create author job
check "without the value" set_value admissionPolicy.enabled=false
check "nobody is asked" within 30 admitted create author job
check "and nothing is left" equals '' kube get validatingadmissionpolicies,validatingadmissionpolicybindings -o name

finish
