#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone. Usage: tests/style/headers_test.sh BUILD-FOLDER (a configured one)
set -euo pipefail

build=${1:?usage: headers_test.sh BUILD-FOLDER}
log=$build/header_check.log

ok=1
cmake --build "$build" --target header_check -- -k 0 >"$log" 2>&1 || ok=0
total=$(<"$build/header_count.txt")
failed=$(grep -c '^FAILED: tests/style/' "$log") || true

if ((!ok)); then
  cat -- "$log"
  ((failed > 0 && failed <= total)) || exit 1   # Not a header's fault: no count, one failure.
fi
echo "$((total - failed)) passed, $failed failed"
((failed == 0))
