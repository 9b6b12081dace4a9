# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For helm and promtool to source: a program of a pinned Go module, built once into the cache of the local cluster's
# programs (tests/cluster/README.md). $here is the folder of the two.
set -euo pipefail
: "${here:?}"

cache=${GRUS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grus}

# tool_version NAME MODULE: the version that tools/NAME/go.mod pins.
tool_version() { sed -n "s|^require $2 \(v.*\)\$|\1|p" "$here/tools/$1/go.mod"; }

# build_once PROGRAM PACKAGE FLAG...: builds $cache/NAME-VERSION/NAME from tools/NAME, unless it is there and of this
# go.mod and go.sum.
build_once() {
  local program=$1 package=$2 name=${1##*/} stamp
  shift 2
  stamp=$(cat -- "$here/tools/$name/go.mod" "$here/tools/$name/go.sum" | sha256sum)
  [[ ! -x $program || $(cat -- "$program.stamp" 2>/dev/null) != "$stamp" ]] || return 0
  (
    if ! type -P go >/dev/null; then
      echo "$name: go is missing: $name is built with it; install Go 1.26 or newer" >&2
      exit 1
    fi
    mkdir -p -- "${program%/*}"
    exec 9>"$program.lock"
    flock 9   # Two callers at once build once.
    [[ ! -x $program || $(cat -- "$program.stamp" 2>/dev/null) != "$stamp" ]] || exit 0
    echo "building $name into $cache (once; about 2 minutes on 2 cores)" >&2
    cd -- "$here/tools/$name"
    # A name of its own and a rename: an interrupted build leaves no half program.
    CGO_ENABLED=0 GOFLAGS='-mod=readonly -buildvcs=false' GOWORK=off GOOS='' GOARCH='' \
      go build -v -trimpath "$@" -o "$program.tmp" "$package" 2>&1 |
      awk '/^[^ #:]+$/ {if (++n % 200 == 0) print "  " n " packages"; next} {print}' >&2
    mv -- "$program.tmp" "$program"
    printf '%s\n' "$stamp" >"$program.stamp"
  )
}
