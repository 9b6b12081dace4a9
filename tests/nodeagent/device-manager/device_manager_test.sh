#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Our device plugins and the kubelet's own device manager: builds that (main.go) into the cache of the local cluster's
# programs, then runs device_manager_test with it. Its paths below /var/lib/kubelet are fixed, so both run in a mount
# namespace with an empty /var/lib: this needs root. Arguments go to the test, for example --gtest_filter='*Fifty*'.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
cd -- "$here/../../.."
# shellcheck source=scripts/gtest-results.sh
source scripts/gtest-results.sh

pins=$PWD/tests/cluster/tools/kubernetes   # The device manager of the kubelet that test clusters run.
version=$(sed -n 's|^require k8s.io/kubernetes \(v.*\)$|\1|p' "$pins/go.mod")
sources=$(cat -- "$pins"/go.{mod,sum} "$here"/*.go | sha256sum)
program=${GRUS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grus}/k8s-$version/device-manager-${sources:0:16}
binary=build/release/bin/device_manager_test
passed=0
failed=0

finish() {
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}
not_run() {
  echo "NOT RUN: $*; no plugin was tried with the kubelet's device manager"
  finish
}
build() {
  mkdir -p -- "${program%/*}"
  exec 9>"${program%-*}.lock"
  flock 9   # Two callers at once build once.
  [[ ! -x $program ]] || return 0
  echo "building the kubelet's device manager into ${program%/*} (once; seconds beside the cluster's kubelet, minutes without)" >&2
  rm -f -- "${program%-*}"-*   # Of other sources.
  # The flags of tests/cluster/command/build.go: what those builds compiled is not compiled again.
  CGO_ENABLED=0 GOFLAGS='-mod=readonly -buildvcs=false' GOWORK=off GO111MODULE=on GOOS='' GOARCH='' \
    go build -C "$here" -modfile="$pins/go.mod" -trimpath -ldflags '-s -w' -o "$program.tmp" . >&2 &&
    mv -- "$program.tmp" "$program"
}

((EUID == 0)) || not_run "this needs root"
unshare --mount true 2>/dev/null || not_run "no mount namespace can be made here"
if [[ ! -x $program ]]; then
  type -P go >/dev/null || not_run "go is missing, which builds it; install Go 1.26 or newer"
  if ! (build); then
    go mod download -C "$here" -modfile="$pins/go.mod" k8s.io/kubernetes || not_run "its Go modules cannot be downloaded"
    echo "FAIL  the kubelet's device manager could not be built"
    failed=1
    finish
  fi
fi
if [[ ! -x $binary ]]; then
  echo "FAIL  $binary is missing: scripts/build release device_manager_test"
  failed=1
  finish
fi

results=$PWD/build/release/test-results/device_manager_test.xml
rm -f -- "$results"
ok=1
# shellcheck disable=SC2016 # Of the inner shell.
GRUS_DEVICE_MANAGER=$program timeout 300 unshare --mount -- bash -euc 'mount -t tmpfs tmpfs /var/lib && exec "$@"' - \
  "$binary" --gtest_brief=1 --gtest_output="xml:$results" "$@" </dev/null || ok=0
add_gtest_results device_manager_test "$results" "$ok"
finish
