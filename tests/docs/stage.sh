# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # Backquotes of Markdown; variables of docs_test.sh.
# For docs_test.sh to source: plays the commands of a page on a cluster of its own.

# play_page PAGE: a check for each block.
play_page() {
  local page=$1 name stage block before=$failed
  name=docs-${page//[^a-z]/}-$$
  name=${name,,}
  stage=$folder/$name
  mkdir -p -- "$stage/blocks" "$stage/bin" "$stage/home/.kube" "$stage/tree"
  blocks "$page" "$stage/blocks"
  ln -s -- "$PWD"/* "$stage/tree"   # Commands may write files.
  make_programs "$name" "$stage"
  check "$page: a cluster" "$cluster" up --name "$name"
  cp -- "$("$cluster" kubeconfig --name "$name")" "$stage/home/.kube/config"
  check "$page: what it takes for granted" prepare "$page" "$name" "$stage"
  for block in "$stage"/blocks/*; do
    if grep -q '^helm uninstall' "$block"; then check_page "$page" "$stage"; fi
    if grep -q '^kubectl apply -f examples/trial' "$block"; then start_trainer "$name" "$stage"; fi
    play_block "$page" "$stage" "$block"
  done
  ((failed == before)) || [[ ! -e $stage/manager.log ]] || tail -n 5 -- "$stage/manager.log" | cut -c1-400 | sed 's/^/      log: /'
  stop_programs "$stage"
  "$cluster" down --name "$name" >/dev/null 2>&1
}

# on_stage STAGE COMMAND...: in the copy of the tree, with the programs of the page first on the PATH.
on_stage() {
  local stage=$1
  shift
  (cd -- "$stage/tree" && exec env -u KUBECONFIG HOME="$stage/home" PATH="$stage/bin:$bin:$PATH" "$@")
}

play_block() { # PAGE STAGE FILE
  local page=$1 stage=$2 file=$3 first line command
  line=$(basename -- "$file")
  line=$((10#${line%%.*}))
  first=$(head -n 1 -- "$file")
  if [[ $first == "$marker"* ]]; then
    echo "$page:$line: ${first#"$marker"}: $(sed -n 2p -- "$file")" >>"$stage/not-run"
    return
  fi
  command=$(grep -v -m 1 '^#' -- "$file" | cut -c1-90)
  case $file in
    *.sh) check "$page:$line: $command" on_stage "$stage" timeout 240 bash -euo pipefail "$file" ;;
    *.console) check "$page:$line: $command" play_console "$stage" "$file" ;;
    *.yaml) [[ $first != apiVersion:* ]] || check "$page:$line: kubectl apply: $(sed -n 2p -- "$file")" on_stage "$stage" kubectl apply -f "$file" ;;
  esac
}

# A console block: runs what follows "$ ", and compares the headers of tables.
play_console() { # STAGE FILE
  local stage=$1 line command='' header='' output='' is_shown=0
  run_command() {
    [[ -n $command ]] || return 0
    output=$(on_stage "$stage" timeout 240 bash -euo pipefail -c "$command" 2>&1) || { echo "$command"; echo "$output"; return 1; }
    [[ -z $header ]] || header_of "$output" "$header" || { echo "$command"; echo "no header '$header' in:"; echo "$output"; return 1; }
  }
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $command == *\\ && $is_shown == 0 ]]; then
      command+=$'\n'$line
    elif [[ $line == '$ '* ]]; then
      run_command || return 1
      command=${line#'$ '} header='' is_shown=0
    elif ((!is_shown)); then
      is_shown=1
      if [[ $line =~ ^[A-Z][A-Z\ -]+$ ]]; then header=$line; fi
    fi
  done <"$2"
  run_command
}
header_of() { # header_of OUTPUT HEADER: whatever the widths of the columns.
  grep -qxF -e "$(tr -s ' ' <<<"$2" | sed 's/ $//')" < <(tr -s ' ' <<<"$1" | sed 's/ $//')
}

# What a page finds when its reader comes to it.
prepare() { # PAGE NAME STAGE
  local page=$1 name=$2 stage=$3 product=NVIDIA-A100-SXM4-80GB
  [[ $page != docs/trials.md ]] || product=A100-SXM4-80GB
  "$cluster" nodes 4 --gpus 8 --label "nvidia.com/gpu.product=$product" --name "$name" || return 1
  case $page in
    README.md | docs/quickstart.md | docs/operations.md | charts/README.md) ;;   # They install it.
    *) on_stage "$stage" helm install grus charts/grus --namespace grus-system --create-namespace --wait --timeout 60s ;;
  esac || return 1
  case $page in
    docs/gangs.md)   # A gang that waits.
      on_stage "$stage" kubectl create namespace team-a &&
        sed 's/resnet/bert/; s|nvidia.com/gpu: 4|nvidia.com/gpu: 9|' examples/gang/gang.yaml |
        on_stage "$stage" kubectl -n team-a apply -f -
      ;;
    docs/trials.md)   # The job that the page measures.
      start_trainer "$name" "$stage"
      sed -E 's/(name: )elastic-bert/\1bert/; s/"--epochs=3"/"--batch-size", "32"/; s/(min|target)Replicas: .*/\1Replicas: 2/; s/maxReplicas: .*/maxReplicas: 8/' \
        examples/elastic-bert/job.yaml | on_stage "$stage" kubectl apply -f - &&
        on_stage "$stage" kubectl wait ehj/bert --for=jsonpath='{.status.phase}'=Running --timeout=60s
      ;;
  esac
}
start_trainer() { # NAME STAGE: plays what trainings print.
  scripts/demo-trainer "$1" >"$2/trainer.log" 2>&1 &
  echo "$!" >"$2/trainer.pid"
}

# What else must be true of a page, before it uninstalls what it needs.
check_page() { # PAGE STAGE
  local page=$1 stage=$2
  case $page in
    docs/operations.md)
      check "$page has every metric of /metrics, and only those of the code" nothing check_metrics "$page" "$stage"
      check "$page has log lines of the code only" nothing check_log_lines "$page"
      check "$page: the role edit does not change queues, pools, profiles and statuses" nothing rights_of "$stage" alice \
        workloadprofiles gpuqueues nodepools elastichorovodjobs/status podgroups.scheduling.x-k8s.io/status trialjobs/status
      ;;
  esac
}
rights_of() { # rights_of STAGE USER RESOURCE...: which of them the user, who edits team-a, may change there.
  local stage=$1 user=$2 resource part=()
  shift 2
  for resource; do
    part=()
    [[ $resource != */* ]] || part=("--subresource=${resource#*/}")
    [[ $(on_stage "$stage" kubectl -n team-a auth can-i patch "${resource%/*}" "${part[@]}" --as="$user" 2>/dev/null) == no ]] ||
      echo "$user may patch $resource"
  done
}

stop_programs() { # STAGE
  local pid
  for pid in "$1"/*.pid; do
    [[ -e $pid ]] || continue
    kill -TERM "$(<"$pid")" 2>/dev/null
    rm -f -- "$pid"
  done
}

# kubectl and helm for the commands of a page. The pods of the chart's Deployment are simulated, so helm also runs
# grus-manager itself: as the chart's account, with the arguments of the Deployment but for the ports. And a training
# ends when a page waits for its end.
make_programs() { # NAME STAGE
  cat >"$2/bin/kubectl" <<SHIM
#!/usr/bin/env bash
kube() { "$PWD/$cluster" kubectl --name "$1" -- "\$@"; }
if [[ "\$*" == *wait*ehj/*condition=Complete* ]]; then
  kube "\$@" &
  while kill -0 "\$!" 2>/dev/null; do
    kube annotate pods -l ai.centauruscloud.io/role=launcher grus.test/outcome=succeed --overwrite >/dev/null 2>&1
    sleep 0.5
  done
  wait "\$!"
  exit
fi
exec "$PWD/$cluster" kubectl --name "$1" -- "\$@"
SHIM
  cat >"$2/bin/helm" <<SHIM
#!/usr/bin/env bash
export GRUS_STATE=$GRUS_STATE
"$PWD/tests/charts/helm" "\$@" || exit
case \$1 in install | upgrade | rollback | uninstall) ;; *) exit 0 ;; esac
if [[ -e $2/manager.pid ]]; then
  kill -TERM "\$(<$2/manager.pid)"
  rm $2/manager.pid
fi
[[ \$1 != uninstall ]] || exit 0
set -e
namespace=\$(kubectl get deployments --all-namespaces -l app.kubernetes.io/name=grus -o 'jsonpath={.items[0].metadata.namespace}')
account=$2/account
kube() { kubectl "\$@"; }
source "$PWD/tests/charts/account.sh"
account_kubeconfig "\$HOME/.kube/config" "\$namespace" "\$account"
mapfile -t args < <(deployment_arguments "\$namespace")
setsid "$bin/grus-manager" --kubeconfig "\$account" "\${args[@]}" >>$2/manager.log 2>&1 </dev/null &
echo "\$!" >$2/manager.pid
SHIM
  chmod +x -- "$2/bin/kubectl" "$2/bin/helm"
}

# The metrics that the manager exports, and those in the table of a page.
check_metrics() { # PAGE STAGE
  local port exported listed name
  port=$(sed -nE 's/.*"metrics_port":"?([0-9]+).*/\1/p' "$2/manager.log" | tail -n 1)
  exported=$(http "$port" /metrics | sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' | sort -u)
  listed=$(sed -nE 's/^\| `([a-z]+(_[a-z]+)+)` \|.*/\1/p' "$1" | sort -u)
  [[ -n $exported ]] || echo "/metrics does not answer, or is empty"
  comm -23 <(echo "$exported") <(echo "$listed") | sed 's/^/not on the page: /'
  while read -r name; do   # Some are exported only once there is something to tell.
    grep -rqF "\"$name\"" controllers clientlib nodeagent || echo "not in the code: $name"
  done <<<"$listed"
}

# Messages of log lines on a page that nothing logs.
check_log_lines() { # PAGE
  local message found=0
  while IFS= read -r message; do
    found=1
    grep -rqF "\"$message\"" controllers clientlib nodeagent || echo "not in the code: $message"
  done < <(sed -n '/^## Log lines/,/^## Troubleshooting/s/^| `\([^`]*\)` |.*/\1/p' "$1")
  ((found)) || echo "no log line was found"
}
