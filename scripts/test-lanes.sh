# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by scripts/test: runs its suites in lanes, keeps how long each took, and reports. Needs the lists `all` and
# `wanted`, a function suite_NAME for each suite, and open file 9, which locks the tree.
: "${all[*]:?}" "${wanted[*]:?}"

logs=build/test-logs
took=build/test-seconds.tsv   # Of earlier runs of all suites: suite and seconds, the latest last.
readonly kept_runs=10
lane_pids=()
side_by_side=0
mkdir -p -- "$logs"
rm -f -- "$logs"/*.result
touch -- "$took"

# show: prints its input; several lanes take turns.
show() { flock 8 && cat; } 8>"$logs/lock"

# run_suite NAME: writes its log and its result. What it prints is indented, so that only the total stands at the start
# of a line. A lane that is not alone shows it when the suite has ended.
run_suite() {
  local name=$1 start=$SECONDS status=0 passed=0 failed=1 count='' remark=''
  local log=$logs/$name.log
  echo "--- $name starts" | show
  # In a subshell, so that a crash stays in it.
  if ((side_by_side)); then
    ("suite_$name") </dev/null >"$log" 2>&1 9>&- || status=$?
  else
    ("suite_$name") </dev/null 2>&1 9>&- | tee "$log" | sed -u 's/^/    /' || status=$?
  fi
  count=$(grep -xE '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) || true
  if [[ -z $count ]]; then
    remark="    $name printed no count (exit status $status)"$'\n'
  else
    read -r passed _ failed _ <<<"$count"
    if ((status != 0 && failed == 0)); then
      remark="    $name failed with exit status $status although no test did"$'\n'
      failed=1
    fi
  fi
  {
    ((!side_by_side)) || sed 's/^/    /' "$log"
    echo "$remark--- $name: $passed passed, $failed failed, $((SECONDS - start)) s"
  } | show
  echo "$passed $failed $((SECONDS - start))" >"$logs/$name.result"
}

run_lane() { # run_lane SUITE...: one after another.
  local suite
  trap '' INT   # All that it starts is ended once, by end_lanes.
  for suite; do run_suite "$suite"; done
}

# run_lanes LANE...: a lane is a list of suites, of which it runs the wanted ones. Returns when all lanes have ended.
run_lanes() {
  local lane suite list selected=()
  for lane; do
    list=
    for suite in $lane; do
      ! is_wanted "$suite" || list+=" $suite"
    done
    [[ -z $list ]] || selected+=("$list")
  done
  side_by_side=$((${#selected[@]} > 1))
  for lane in "${selected[@]}"; do
    # shellcheck disable=SC2086 # Several names.
    run_lane $lane &
    lane_pids+=($!)
  done
  wait "${lane_pids[@]}" || true   # A lane that died left suites without a result.
  lane_pids=()
}

# to_end PID...: these and all that they started, parents first, but what others end: a timeout(1) passes a signal on to
# the group that it leads; processes of clusters have sessions of their own.
to_end() {
  sed -nE 's/^([0-9]+) \((.*)\) [A-Z] ([0-9]+) ([0-9]+) ([0-9]+) .*/\1 \3 \4 \5 \2/p' /proc/[0-9]*/stat 2>/dev/null |
    awk -v roots="$*" '
      { parent[$1] = $2; group[$1] = $3; session[$1] = $4; name[$1] = $5 }
      END {
        n = split(roots, found, " ")
        for (i = 1; i <= n; ++i) {
          pid = found[i]
          is_led = group[pid] != pid && name[group[pid]] == "timeout"
          if (session[pid] == session[found[1]] && !is_led) print pid
          for (child in parent) if (parent[child] == pid) found[++n] = child
        }
      }'
}

# A process gets one signal: a second one would stop the clean-up of those that have clusters.
end_lanes() {
  local pids=() pid deadline=$((SECONDS + 120))
  trap '' INT TERM
  echo "scripts/test: stopping" >&2
  ((${#lane_pids[@]} == 0)) || mapfile -t pids < <(to_end "${lane_pids[@]}")
  ((${#pids[@]} == 0)) || kill -TERM "${pids[@]}" 2>/dev/null || true
  for pid in "${pids[@]}"; do
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < deadline)); do sleep 0.1; done
  done
  exit 130
}
trap end_lanes INT TERM

# median SUITE: of the seconds of earlier runs; nothing if there is none.
median() {
  awk -F '\t' -v suite="$1" '$1 == suite {print $2}' "$took" | sort -n |
    awk '{seconds[NR] = $1} END {if (NR) print seconds[int((NR + 1) / 2)]}'
}
keep_seconds() { # keep_seconds SUITE SECONDS
  printf '%s\t%s\n' "$1" "$2" >>"$took"
  tac -- "$took" | awk -F '\t' -v kept="$kept_runs" '++seen[$1] <= kept' | tac >"$took.new"
  mv -- "$took.new" "$took"
}

# what_failed SUITE: the lines of its log that tell it, ten at most; its last lines if none does. Somebody may see no more
# of all this than its end.
what_failed() {
  echo "failed in $1:"
  grep -aE '^(FAIL|not ok|\[  FAILED  \]|[0-9]+ - .*\(Failed\)| *[^ ]+: Failure$)' "$logs/$1.log" 2>/dev/null | sort -u | head -n 10 ||
    true
  tail -n 3 "$logs/$1.log" 2>/dev/null || echo "(it left no log)"
}

# report: the table, in the order of `all`, what failed, and the total; fails if a test did.
report() {
  local suite passed failed seconds before mark total_passed=0 total_failed=0 bad=()
  printf '\n%-12s %8s %8s %8s %8s\n' suite passed failed seconds median
  for suite in "${all[@]}"; do
    is_wanted "$suite" || continue
    passed=0 failed=1 seconds=0 mark=
    [[ ! -s $logs/$suite.result ]] || read -r passed failed seconds <"$logs/$suite.result"
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    ((failed == 0)) || bad+=("$suite")
    before=$(median "$suite")
    if [[ -n $before ]] && ((seconds > before + 10 && 2 * seconds > 3 * before)); then mark='  slower'; fi
    printf '%-12s %8d %8d %8d %8s%s\n' "$suite" "$passed" "$failed" "$seconds" "${before:--}" "$mark"
    # A suite that fails may end early, and one without the other lanes is faster.
    if ((failed == 0 && ${#wanted[@]} == ${#all[@]})); then keep_seconds "$suite" "$seconds"; fi
  done
  for suite in "${bad[@]}"; do what_failed "$suite" | cut -c 1-300 | sed 's/^/    /'; done
  printf '\n%s: %d s; logs in %s\n' "all suites" "$SECONDS" "$logs"
  echo "$total_passed passed, $total_failed failed"
  ((total_failed == 0))
}
