#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Plays the sequences of sequences.txt through grus's host lists and the launcher code of the real Horovod 0.28.1, which
# is taken out of the image that scripts/training-image builds; then tries what grus changes in the workers' Horovod.
# One line a sequence or case; the last line is the count.
# Usage: tests/training/oracle/oracle_test.sh [PART_OF_A_NAME]     environment: BUILD=build/release
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../../.."

not_run() { echo "NOT RUN: $1"; echo "0 passed, 0 failed"; exit 0; }

player=${BUILD:-build/release}/bin/host_list_player
[[ -x $player ]] || { echo "no $player: cmake --build --preset release --target host_list_player" >&2; exit 1; }
type -P python3 >/dev/null || not_run "python3 is missing: apt-get install python3"

# Python code alone, without TensorFlow and Horovod's C++ core: 6 MB, whatever else is in the image.
cache=${GRUS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grus}
packages=$cache/horovod-0.28.1-launcher
if [[ ! -d $packages ]]; then
  image=$(find "$cache"/training-keras-*/ -maxdepth 1 -name image.tar -print -quit 2>/dev/null) || true
  [[ -n $image ]] || not_run "Horovod 0.28.1 is not in the cache; scripts/training-image keras builds it"
  new=$(mktemp -d "$packages.XXXXXX")
  trap 'rm -rf -- "$new"' EXIT
  site=opt/horovod/lib/python3.11/site-packages
  members=("$site"/{horovod,horovod-0.28.1.dist-info,cloudpickle,packaging,psutil,yaml,_yaml})
  tar -xOf "$image" layer-1.tar |
    tar -C "$new" -x --strip-components=5 --exclude=__pycache__ --exclude='mpi_lib*.so' "${members[@]}"
  chmod 755 "$new"
  mv -T -- "$new" "$packages" 2>/dev/null || [[ -d $packages ]]  # Another one may have been faster.
fi

log=$(mktemp)
trap 'rm -rf -- "$log" "${new:-}"' EXIT
status=0
unset "${!HOROVOD_@}"   # Horovod reads them.
export PYTHONDONTWRITEBYTECODE=1
{
  PYTHONPATH=$packages:tests/training/oracle python3 -c 'import sys, replay; sys.exit(replay.main(*sys.argv[1:]))' \
    "$player" tests/training/oracle/sequences.txt "$@" 2>"$log" || status=$?
  (($#)) || python3 tests/training/oracle/patch_test.py "$player" "$packages" || status=$?
  # What Horovod itself says is long, and of use only when a sequence fails.
  ((status == 0)) || tail -n 40 -- "$log" >&2
  exit "$status"
} | awk '/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; next } { print; fflush() }
         END { print passed + 0 " passed, " failed + 0 " failed" }'
