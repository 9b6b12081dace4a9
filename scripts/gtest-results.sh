# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced: adds what a GoogleTest binary wrote with --gtest_output=xml to `passed` and `failed`.

# add_gtest_results NAME XML OK: OK is 1 when the binary succeeded. A binary that crashed wrote no file, and one
# that a sanitizer stopped at exit failed without a failed test: both count as one failure. So does each test that
# is disabled or skips itself: what nobody runs protects nobody.
add_gtest_results() {
  local name=$1 xml=$2 ok=$3 root tests bad disabled skipped
  root=$(grep -m 1 '<testsuites ' "$xml" 2>/dev/null) || true
  if [[ ! $root =~ tests=\"([0-9]+)\"\ failures=\"([0-9]+)\"\ disabled=\"([0-9]+)\"\ errors=\"([0-9]+)\" ]]; then
    echo "FAIL  $name crashed, timed out or was not built"
    failed=$((failed + 1))
    return
  fi
  tests=${BASH_REMATCH[1]} disabled=${BASH_REMATCH[3]} bad=$((BASH_REMATCH[2] + BASH_REMATCH[4]))
  skipped=$(grep -c 'result="skipped"' "$xml") || true
  if ((disabled + skipped > 0)); then
    echo "FAIL  $name: $disabled disabled, $skipped skipped"
  elif ((tests == 0)); then
    echo "FAIL  $name has no tests"
    bad=1 tests=1
  elif ((!ok && bad == 0)); then
    echo "FAIL  $name failed although no test did"
    bad=1 tests=$((tests + 1))
  fi
  bad=$((bad + disabled + skipped))
  passed=$((passed + tests - bad))
  failed=$((failed + bad))
}
