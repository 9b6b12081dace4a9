#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The pages for users are true: every command of the pages below runs as it is written, in order, on a real control
# plane with simulated nodes and a running manager; reasons, metrics and named tests are those of the code. Takes about
# three minutes.
# Usage: docs_test.sh [PAGE...]    only the commands of these pages; without one: everything
#
# What runs of a page: fenced blocks of sh and console, and of yaml if they begin with an apiVersion (kubectl apply). In a
# console block the lines after "$ " run; where the shown output begins with the header of a table, so must the real one.
# A block whose first line is "# not run in the tests: REASON" does not run; it is counted and listed.
#
# grus-manager is that of build/release/bin, or of the folder that GRUS_BIN names.
# shellcheck disable=SC2016,SC2030,SC2031,SC2317,SC2329 # Backquotes of Markdown; lanes in subshells; check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

cluster=tests/cluster/cluster
bin=$(readlink -f -- "${GRUS_BIN:-build/release/bin}")
folder=$(mktemp -d "${TMPDIR:-/tmp}/grus-docs-test.XXXXXX")
export GRUS_STATE=$folder/state
mkdir -- "$GRUS_STATE"
export GRUS_CACHE=${GRUS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grus}   # Pages have a HOME of their own.
# Two pages at a time, each with a cluster of its own: most of the time they wait.
lanes=(
  'docs/quickstart.md docs/operations.md charts/README.md'
  'docs/trials.md docs/gangs.md docs/queues.md docs/migration.md README.md'
)

clean_up() {
  local pid
  for pid in "$folder"/*/*.pid; do
    [[ ! -e $pid ]] || kill -KILL "$(<"$pid")" 2>/dev/null
  done
  "$cluster" down --all >/dev/null 2>&1
  rm -rf -- "$folder"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
# shellcheck source=tests/docs/pages.sh
source tests/docs/pages.sh
# shellcheck source=tests/docs/reasons.sh
source tests/docs/reasons.sh
# shellcheck source=tests/docs/stage.sh
source tests/docs/stage.sh

nothing() { # nothing COMMAND...: it prints nothing.
  local output
  output=$("$@") || true
  [[ -z $output ]] || { echo "$output"; return 1; }
}

for program in grus-manager kubectl-grus; do
  need "$program is built" test -x "$bin/$program"
done
if (($#)); then
  for page; do play_page "$page"; done
  finish
fi

mapfile -t all_pages < <(find . \( -path ./build -o -path ./.git -o -path ./.cache \) -prune -o -name '*.md' -print | sed 's|^\./||')
read -ra played <<<"${lanes[*]}"
check "commands stand in fenced blocks" nothing check_commands_are_fenced "${played[@]}"
check "links lead somewhere" nothing check_links "${all_pages[@]}"
check "SECURITY.md names tests that exist" nothing check_named_tests SECURITY.md
check "docs/operations.md has every reason of the code, and no other" nothing check_reasons docs/operations.md
check "a reason that is missing there is found" prints 'not on the page: .*CannotFit' \
  check_reasons <(grep -v '^| `CannotFit`' docs/operations.md)
check "and one that the code does not have" prints 'not in the code: Mystery' \
  check_reasons <(sed 's/^| `Training`/| `Mystery`/' docs/operations.md)

fixture=$folder/fixture
mkdir -p -- "$fixture"/{tree,home}
check "a command outside of a fenced block is found" prints 'outside of a fenced block:     kubectl' \
  check_commands_are_fenced <(printf '    kubectl get pods\n')
printf '[x](nowhere.md)\n' >"$fixture/links.md"
check "a link that leads nowhere is found" prints 'there is no nowhere.md' check_links "$fixture/links.md"
check "a test that does not exist is found" prints 'no test Mystery in tests/clientlib/base/log_test.cc' \
  check_named_tests <(printf '| claim | `clientlib/base/log_test`: `Mystery` |\n')
check "a command that fails is found" fails play_console "$fixture" <(printf '$ true\n$ false\n$ true\n')
check "a table that has another header is found" fails play_console "$fixture" <(printf '$ echo NAME AGE\nNAME READY\n')
check "one whose columns are wider is as good" play_console "$fixture" <(printf '$ echo NAME AGE\nNAME   AGE\nx      1m\n')

pids=()
for lane in "${lanes[@]}"; do
  read -ra pages <<<"$lane"
  # finish() ends the subshell, whose last line is its count.
  (trap - EXIT; passed=0 failed=0; for page in "${pages[@]}"; do play_page "$page"; done; finish) \
    >"$folder/lane-${#pids[@]}.log" 2>&1 &
  pids+=($!)
done
for i in "${!pids[@]}"; do
  wait "${pids[$i]}"
  if ! [[ $(tail -n 1 "$folder/lane-$i.log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    cat -- "$folder/lane-$i.log"
    echo "FAIL  the pages ${lanes[$i]} were not played to the end"
    failed=$((failed + 1))
    continue
  fi
  passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  head -n -1 -- "$folder/lane-$i.log"
done
not_run=$(cat -- "$folder"/*/not-run 2>/dev/null)
echo "$(grep -c . <<<"$not_run") blocks are not run:"
while IFS= read -r block; do echo "      $block"; done <<<"$not_run"
finish
