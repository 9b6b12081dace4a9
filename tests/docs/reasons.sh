# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034 # Backquotes of Markdown; docs_test.sh uses the variables.
# For docs_test.sh to source: the reasons of conditions and events that the code sets, and those on a page.

# statements FILE...: one a line, without comments.
statements() { sed 's|//.*||' "$@" | tr '\n' ' ' | sed 's/;/;\n/g'; }

# A literal, or the two of "a ? X : Y"; not after an expression that is a reason itself.
readonly literals='([^"]*)"([A-Z][A-Za-z]+)"( *: *"([A-Z][A-Za-z]+)")?'
tell_literals() { # Of BASH_REMATCH, from its first group on.
  shopt -s nocasematch
  [[ ${BASH_REMATCH[1]} == *reason* || ${BASH_REMATCH[1]} == *ToString* ]] || printf '%s\n' "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]}"
  shopt -u nocasematch
}

# reasons_in FILE...: of events, conditions (also of pods), constants and tables of reasons.
reasons_in() {
  local statement rest
  grep -hoP 'k\w*Reason\w*\[\]\s*=\s*"\K[A-Z]\w+' "$@"
  statements "$@" | grep -E 'EventType::k|Set\(|"reason"|kReasons\[\] =' | while IFS= read -r statement; do
    if [[ $statement == *'kReasons[] ='* ]]; then
      grep -oP '\{\s*"\K[A-Z]\w+' <<<"${statement#*kReasons[] =}"
      continue
    fi
    if [[ $statement == *EventType::k* ]]; then
      rest=${statement##*EventType::k}
      [[ ! ${rest#*[!A-Za-z]} =~ ^$literals ]] || tell_literals
    fi
    [[ ! $statement =~ Set\(\ *\"[A-Za-z]+\",$literals ]] || tell_literals
    [[ ! $statement =~ \{\"reason\",$literals ]] || tell_literals
  done
}
# names_of FUNCTION FILE: the strings of EnumNames(X) or ToString(X).
names_of() {
  sed -n "/$1/,/return/p" "$2" | sed 's/kBelowMinimumReason/"BelowMinimum"/g' | grep -oP '"\K[A-Z]\w+(?=")'
}

reasons_of_code() { # By the headings of the page.
  local of=$1
  case $of in
    'Every kind')
      reasons_in controllers/frame/*.{h,cc}
      grep -hoP '\("reason":"\K\w+' crds/types/*.cc
      ;;
    ElasticHorovodJob) reasons_in controllers/{elastic/*,profiler/progress_*}.{h,cc} ;;
    'Changes of size') names_of 'ToString(ScaleReason' controllers/elastic/worker_plan.cc ;;
    Pod) reasons_in controllers/extender/*.{h,cc} ;;
    PodGroup) reasons_in controllers/gang/*.{h,cc} controllers/cluster/*.{h,cc} ;;
    TrialJob)
      names_of 'EnumNames(TrialJobReason)' crds/types/trial_reasons.cc
      reasons_in controllers/trial/*.{h,cc}
      ;;
    Trials) names_of 'EnumNames(TrialReason)' crds/types/trial_reasons.cc ;;
    WorkloadProfile) reasons_in controllers/profile/*.{h,cc} ;;
    GpuQueue)
      names_of 'EnumNames(GpuQueueReason)' crds/types/gpu_queue.cc
      reasons_in controllers/allocator/*.{h,cc}
      ;;
    Node) reasons_in nodeagent/{,agent/}*.{h,cc} ;;
    NodePool) names_of 'EnumNames(NodePoolReason)' crds/types/node_pool.cc ;;
  esac | sort -u | grep .
}
readonly reason_headings=('Every kind' ElasticHorovodJob 'Changes of size' Pod PodGroup TrialJob Trials WorkloadProfile GpuQueue NodePool Node)

# reasons_of_page HEADING < PAGE: the first cells of the rows below it.
reasons_of_page() {
  awk -v heading="### $1" '/^#/ { inside = $0 == heading } inside' | sed -nE 's/^\| `([A-Z][A-Za-z]+)`.*/\1/p' | sort -u
}

check_reasons() { # PAGE
  local heading text in_code
  text=$(<"$1")
  for heading in "${reason_headings[@]}"; do
    in_code=$(reasons_of_code "$heading")
    [[ -n $in_code ]] || echo "$heading: no reason was found in the code"
    diff <(echo "$in_code") <(reasons_of_page "$heading" <<<"$text") |
      sed -n "s/^< /not on the page: $heading: /p; s/^> /not in the code: /p"
  done
}
