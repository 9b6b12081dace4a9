#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every header compiles alone, and twice in a row. Usage: tests/style/headers_test.sh PRESET
#
# A header with `#pragma once` that a source includes before anything else has compiled alone with that source. Only the
# others, one in eight, are compiled for this test: each takes more than a second.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."

preset=${1:?usage: headers_test.sh PRESET}
build=$PWD/build/$preset
log=$build/header_check.log
objects=tests/style/CMakeFiles/header_check.dir   # Seen from the build folder; see tests/style/CMakeLists.txt.

if ! scripts/build "$preset" >"$log" 2>&1; then
  cat -- "$log"
  exit 1   # Perhaps not a header's fault: no count, one failure.
fi
mapfile -t headers <"$build/headers.txt"
mapfile -t sources < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$build/compile_commands.json" | grep -vF "$build/")
declare -A proven=()
while IFS= read -r header; do
  ! grep -qx '#pragma once' -- "$header" || proven[$header]=1
done < <(grep -m 1 -hE '^#include' -- "${sources[@]}" | sed -nE 's/^#include "(.*)"$/\1/p' | sort -u)

alone=()
for header in "${headers[@]}"; do
  [[ -v proven[$header] ]] || alone+=("$objects/$header.cc.o")
done
echo "${#alone[@]} of ${#headers[@]} headers have no source that includes them first"

ok=1
((${#alone[@]} == 0)) || scripts/build "$preset" "${alone[@]}" >"$log" 2>&1 || ok=0
failed=$(grep -c "^FAILED: $objects/" "$log") || true
if ((!ok)); then
  cat -- "$log"
  ((failed > 0 && failed <= ${#alone[@]})) || exit 1
fi
echo "$((${#headers[@]} - failed)) passed, $failed failed"
((failed == 0))
