#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The container image of grus-manager and grus-node-agent: what its archive holds, that the manager works in there as user 65532 on a
# read-only root, that it can be built again to the same bytes, and that the Dockerfile makes the same files. Needs no
# Docker, but user namespaces where it is not run by root. Takes two minutes once ccache is warm.
# shellcheck disable=SC2317,SC2329 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

state=$(mktemp -d "${TMPDIR:-/tmp}/grus-image-test.XXXXXX")
trap 'rm -rf -- "$state"' EXIT
tar=$state/image.tar
tool=$state/tool
layout=$state/layout   # The archive's files.
root=$state/root       # The image's files.
program=/usr/local/bin/grus-manager
agent=/usr/local/bin/grus-node-agent
library=/usr/local/lib/grus/libgrus-cuda.so
dockerfile=charts/image/Dockerfile
commit=$(git rev-parse HEAD)
[[ -z $(git --no-optional-locks status --porcelain) ]] || commit+=-dirty
epoch=$(git log -1 --format=%ct)

# shellcheck source=tests/kit/check.sh
source tests/kit/check.sh
no_line() { # no_line COMMAND...: it prints nothing.
  local got
  got=$("$@") || true
  [[ -z $got ]] || { echo "$got"; return 1; }
}
value() { sed -nE "s/.*\"$1\":\\[?\"(sha256:)?([^\"]*)\".*/\2/p" "$2"; }   # value KEY FILE: the last of that name in a line.

build_tool() { GOFLAGS='-mod=readonly -buildvcs=false' GOWORK=off CGO_ENABLED=0 go build -C tests/charts/image_tool -trimpath -o "$tool" .; }
need "the test's own program is built" build_tool
need "scripts/image builds the image" scripts/image "$tar"

# --- the archive
mkdir -- "$layout" "$root"
need "it is a tar" tar -xf "$tar" -C "$layout"
cd -- "$layout/blobs/sha256" || finish
check "each blob has the digest that is its name" sha256sum --check --quiet <(for name in *; do echo "$name  $name"; done)
check "there are a layer, a configuration and a manifest" test "$(printf '%s\n' * | wc -l)" = 3
manifest=$(value digest "$layout/index.json")
config=$(sed -E 's/.*"config":\{([^}]*)\}.*/\1/' "$manifest" | sed -nE 's/.*"sha256:([^"]*).*/\1/p')
layer=$(sed -E 's/.*"layers":\[([^]]*)\].*/\1/' "$manifest" | sed -nE 's/.*"sha256:([^"]*).*/\1/p')
need "the manifest names the other two" test -f "$config" -a -f "$layer"
check "docker's manifest.json names the configuration" equals "blobs/sha256/$config" value Config "$layout/manifest.json"
check "and the layer" equals "blobs/sha256/$layer" value Layers "$layout/manifest.json"
layer=$PWD/$layer config=$PWD/$config
cd -- "$OLDPWD" || finish
gzip -dc "$layer" >"$state/layer"
check "the configuration has the digest of the layer, uncompressed" equals "$(sha256sum <"$state/layer" | cut -d' ' -f1)" value diff_ids "$config"
check "it is for this machine" equals "$(go env GOHOSTARCH)" value architecture "$config"
check "it runs as 65532" equals 65532:65532 value User "$config"
check "it runs grus-manager" equals "$program" value Entrypoint "$config"
check "it names the version" equals "$(sed -nE 's/^project\(grus VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)" value org.opencontainers.image.version "$config"
check "it names the commit" equals "$commit" value org.opencontainers.image.revision "$config"
check "it names the licence" equals Apache-2.0 value org.opencontainers.image.licenses "$config"
if type -P skopeo >/dev/null; then
  check "skopeo reads it as an OCI layout" prints '"org.opencontainers.image.title": "grus-manager"' skopeo inspect "oci-archive:$tar"
  check "and as docker's archive" prints '"org.opencontainers.image.title": "grus-manager"' skopeo inspect "docker-archive:$tar"
else
  echo "NOT RUN  skopeo reads it: skopeo is not installed"
fi

# --- what is in the image
need "the layer is a tar" tar -xf "$state/layer" -C "$root" --no-same-owner
check "it has at most 50 MB uncompressed" test "$(stat -c %s "$state/layer")" -le 50000000   # gRPC is 8 of them.
unexpected() {
  tar -tf "$state/layer" | grep -v '/$' | grep -vxE -e 'lib/[a-z0-9_]+-linux-gnu/lib[^/]+\.so[0-9.]*' -e 'lib(64)?/ld-linux[^/]+' \
    -e 'etc/(passwd|group|nsswitch.conf|os-release|debian_version|ssl/certs/ca-certificates.crt)' -e usr/lib/os-release \
    -e "${program#/}" -e "${agent#/}" -e "${library#/}" -e 'usr/share/doc/[^/]+/copyright' -e 'usr/share/doc/grus/(LICENSE|sbom.spdx.json)' \
    -e 'usr/share/common-licenses/[A-Z][A-Za-z0-9.-]*' -e 'var/lib/dpkg/status.d/[^/]+'
}
check "it holds the paths that are known, no other" no_line unexpected
wrong_owner_mode_or_time() {
  TZ=UTC tar -tvf "$state/layer" --numeric-owner --full-time |
    grep -vE "^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx) 0/0 +[0-9]+ $(date --utc --date="@$epoch" '+%F %T') "
}
check "all is root's, only root could write it, and it is as old as the commit" no_line wrong_owner_mode_or_time
executables() { (cd -- "$root" && find . -type f -perm /111 -printf '%f\n' | sed 's/^ld-linux.*/ld-linux/' | sort); }
check "the two programs and their loader are all that can be executed: no shell" \
  equals $'grus-manager\ngrus-node-agent\nld-linux' executables
hardened() { # hardened BINARY PATTERN READELF-FLAG: rules of supply: what Debian's own packages are built with.
  readelf --wide "$3" "$root$1" | grep -E "$2" >/dev/null   # Not -q: readelf would die of a pipe that nobody reads.
}
for binary in "$program" "$agent"; do
  check "${binary##*/} is stripped" fails prints '\.symtab' readelf --wide --sections "$root$binary"
  check "it is position independent" hardened "$binary" 'Type: +DYN' --file-header
  check "what the linker fills in is read-only before main" hardened "$binary" 'BIND_NOW|Flags:.* NOW' --dynamic
  check "from the segment for it" hardened "$binary" 'GNU_RELRO' --program-headers
  check "no stack is executable" fails hardened "$binary" 'GNU_STACK.* RWE ' --program-headers
  check "overrun stacks end it" hardened "$binary" '__stack_chk_fail' --dyn-syms
  check "and so do overrun buffers" hardened "$binary" '__(mem|str|v?snprintf|read|fread|fdelt)[a-z]*_chk' --dyn-syms
  check "no path of the tree is in it" fails grep -qaF -e "$PWD" "$root$binary"
done
check "the library for containers is stripped" fails prints '\.symtab' readelf --wide --sections "$root$library"
check "and programs find in it what it stands in for" hardened "$library" 'FUNC +GLOBAL +DEFAULT +[0-9]+ dlsym' --dyn-syms

needed() { # And what the node's libnvidia-ml.so.1 needs.
  find "$root"/usr/local/bin "$root"/lib* -type f -print0 | xargs -0 readelf --dynamic --wide |
    sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | sort -u - <(printf '%s\n' libdl.so.2 libm.so.6 libpthread.so.0 librt.so.1)
}
libraries() { find "$root"/lib* -type f -printf '%f\n' | sort; }
check "its libraries are those that the programs need and those that they need, no other" equals "$(needed)" libraries
all_certificates() { dpkg-query -L ca-certificates | grep '^/usr/share/ca-certificates/.*\.crt$' | sort | tr '\n' '\0' | xargs -0 cat; }
check "it trusts whom Debian trusts, not whom this machine trusts" cmp <(all_certificates) "$root/etc/ssl/certs/ca-certificates.crt"
check "it knows user 65532" grep -qx 'nonroot:x:65532:65532:.*' "$root/etc/passwd"
check "it has the licence" cmp LICENSE "$root/usr/share/doc/grus/LICENSE"

# --- the SBOM
sbom=$root/usr/share/doc/grus/sbom.spdx.json
listed() { "$tool" sbom "$sbom" | awk -v link="$1" '$3 ~ link {print $1, $2}' | sort; }   # Packages and versions.
installed() { # installed FILE...: their packages and versions. Debian 12 keeps files in /usr/lib that some know as in /lib.
  # shellcheck disable=SC2016 # dpkg-query's own variables.
  { dpkg-query -S "$@" "${@#/usr}" 2>/dev/null || true; } | cut -d: -f1 | sort -u |
    xargs dpkg-query -W -f '${Package} ${Version} ${source:Package}\n'
}
check "the SBOM is right" "$tool" sbom "$sbom"
check "it lies beside the archive too" cmp "$sbom" "$state/image.spdx.json"
check "it says which commit this is" prints "\"sourceInfo\": \"commit $commit\"" cat "$sbom"
mapfile -t from_debian < <(cd -- "$root" && find lib* etc/debian_version usr/lib usr/share/common-licenses -type f -printf '/%p\n' | xargs realpath)
check "it lists the packages that own a file of the image, no other" \
  equals "$(installed "${from_debian[@]}" /usr/share/ca-certificates | cut -d' ' -f1-2)" listed '^(DYNAMIC_LINK|DEPENDS_ON)$'
scanned() { awk '/^Package:/ {name = $2} /^Version:/ {print name, $2}' "$root"/var/lib/dpkg/status.d/* | sort; }
check "scanners find the same" equals "$(listed '^(DYNAMIC_LINK|DEPENDS_ON)$')" scanned
without_copyright() { listed 'LINK|DEPENDS' | while read -r name _; do [[ -s $root/usr/share/doc/$name/copyright ]] || echo "$name"; done; }
check "each has its copyright file" no_line without_copyright

# --- it runs: in namespaces where nothing is but the image, read-only, and a name server and an API server on 127.0.0.1
world=$state/world
cp -a -- "$root" "$world"
mkdir -- "$world/proc" "$world/config" "$state/config"   # What a container runtime mounts.
echo 'nameserver 127.0.0.1' >"$world/etc/resolv.conf"
echo '127.0.0.1 hosts.grus.test' >"$world/etc/hosts"
user=() nested=()
((EUID == 0)) || user=(--map-root-user) nested=(-nested)
manager() { # manager FLAG... -- ARGUMENT...: flags of `image_tool run`, arguments of grus-manager.
  # shellcheck disable=SC2016 # Of the inner shell.
  unshare "${user[@]}" --mount --net -- bash -euc '
    world=$1 config=$2
    shift 2
    mount --bind -- "$world" "$world"
    mount --rbind -- /proc "$world/proc"
    mount --bind -- "$config" "$world/config"
    mount -o remount,bind,ro -- "$world"
    if : 2>/dev/null >"$world/new"; then echo "the root is not read-only"; exit 1; fi
    exec "$@"' - "$world" "$state/config" "$tool" run -root "$world" -program "$program" -kubeconfig-folder "$state/config" "${nested[@]}" "$@"
}
meets() { # meets SERVER TRUST PATTERN: asked to run against SERVER, it comes to print PATTERN, and ends well.
  manager -server "$1" -trust "$2" -until "$3" -- --kubeconfig /config/kubeconfig
}
short=${commit:0:7}${commit:40}
check "grus-manager --version" prints "^grus-manager [0-9.]* ($short)\$" manager -- --version
check "grus-manager --help" prints '^Usage: grus-manager' manager -- --help
check "grus-node-agent --version" prints "^grus-node-agent [0-9.]* ($short)\$" manager -program "$agent" -- --version
check "grus-node-agent --help" prints '^Usage: grus-node-agent' manager -program "$agent" -- --help
check "a server that is not there is a refused connection" meets https://127.0.0.1:1 own 'waiting for the API server.*[Cc]onnect'
check "a name of /etc/hosts is found, a server with a known CA is asked" meets https://hosts.grus.test:6443 own 'api: GET /apis/.* of hosts.grus.test'
check "a name of DNS likewise" meets https://dns.grus.test:6443 own 'api: GET /apis/.* of dns.grus.test'
check "a name of nobody is not resolved" meets https://no.grus.test:6443 own 'waiting for the API server.*resolve'
check "a server with another CA is refused" prints "is not trusted by the configured CA" meets https://dns.grus.test:6443 other 'api: GET'
check "the CAs of the image are read, and do not know it either" prints "is not trusted by the system's CAs" \
  meets https://dns.grus.test:6443 system 'api: GET'

# --- once more
build_again() ( umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 scripts/image "$state/again.tar" )
check "it is built again" build_again
check "to the same bytes" cmp "$tar" "$state/again.tar"

# --- what charts/image/rootfs refuses
built=build/release/bin/cuda/libgrus-cuda.so
rootfs() { GRUS_COMMIT=$1 SOURCE_DATE_EPOCH=$2 charts/image/rootfs "$3" "$3" "${4:-$built}" "$state/refused"; }
stranger=$state/stranger
cat >"$stranger.cc" <<END
#include <cstdio>
int Answer();
int main() { std::printf("grus-manager 0.1.0 (unknown)\n%s", Answer() ? "" : "\n"); }
END
echo 'int Answer() { return 42; }' >"$state/answer.cc"
build_stranger() {
  g++ -shared -o "$state/libanswer.so" "$state/answer.cc" && g++ -o "$stranger" "$stranger.cc" -L"$state" -lanswer -Wl,-rpath,"$state"
}
need "a program with a library of no package is built" build_stranger
check "a binary of another commit is refused" prints "says it is of commit ($short), GRUS_COMMIT says 0123456789" rootfs 0123456789 1 build/release/bin/grus-manager
older_agent() {
  local agent=$state/grus-node-agent
  printf '#!/bin/sh\necho "grus-node-agent 0.1.0 (0123456)"\n' >"$agent" && chmod +x "$agent"
  GRUS_COMMIT=$commit SOURCE_DATE_EPOCH=1 charts/image/rootfs build/release/bin/grus-manager "$agent" "$built" "$state/refused"
}
check "an agent of another commit is refused" prints 'grus-node-agent says it is of commit (0123456)' older_agent
check "no library for containers is refused" prints 'none.so is missing' rootfs "$commit" 1 build/release/bin/grus-manager none.so
check "no time is refused" prints 'SOURCE_DATE_EPOCH "": expected' rootfs "$commit" '' build/release/bin/grus-manager
check "a library of no package is refused" prints 'libanswer.so: no Debian package owns it' rootfs unknown 1 "$stranger"
rm -rf -- "$state/refused" "$state/libanswer.so"
check "a library that is missing is refused" prints 'libanswer.so.*\|does not run here' rootfs unknown 1 "$stranger"

# --- the pins
pins=$state/pins/charts/image
mkdir -p -- "$pins" && cp -a -- charts/image/. "$pins" && cp -- LICENSE "$state/pins" || finish
with_pins() { rm -rf -- "$state/refused" && PINNED=$1 GRUS_COMMIT=$commit SOURCE_DATE_EPOCH=$epoch "$pins/rootfs" build/release/bin/grus-{manager,node-agent} "$built" "$state/refused"; }
pinned() { grep -v '^#' "$1/packages.lock"; }
check "the pins are the packages of the SBOM" equals "$(listed 'LINK|DEPENDS' | cut -d' ' -f1)" eval "pinned charts/image | cut -d' ' -f1"
check "they can be written anew" with_pins new
check "with the versions of the SBOM" equals "$(listed 'LINK|DEPENDS')" pinned "$pins"
check "which are then taken" with_pins 1
sed -i 's/^libc6 .*/libc6 2.0-1/' "$pins/packages.lock"
check "another version is told" prints 'packages.lock has libc6 2.0-1' with_pins ''
check "and refused in a release" prints 'other versions than in packages.lock: install those' with_pins 1
check "notes of a release name the pins" prints '^| libc6 | ' scripts/release-notes
check "and what users notice" prints '^### Added' scripts/release-notes
check "a version without notes has none" prints 'CHANGELOG.md has nothing under "## \[9.9.9\]"' scripts/release-notes 9.9.9

# --- the Dockerfile: its first stage is played in a folder that has only what it copies
context=$state/context
mkdir -- "$context"
instructions() { grep -v '^#' "$dockerfile" | sed -e ':line' -e '/\\$/{N;s/\\\n *//;b line' -e '}'; }   # One a line.
first_stage() { instructions | awk '$1 == "FROM" {stage++} stage == 1' | sed -n "s/^$1 //p"; }
last_stage() { instructions | awk '$1 == "FROM" {stage++} stage == 2' | sed -n "s/^$1 //p"; }
copy() { # copy SOURCE... FOLDER: as Docker does it.
  local folder=$context/${*: -1} source pattern
  mkdir -p -- "$folder"
  for source in "${@:1:$#-1}"; do
    while read -r pattern; do
      # shellcheck disable=SC2053 # A pattern.
      if [[ $source == $pattern || $source == $pattern/* ]]; then echo "$source is excluded by $pattern in $dockerfile.dockerignore"; return 1; fi
    done < <(grep -v '^#' "$dockerfile.dockerignore")
    if [[ -d $source ]]; then source+=/.; fi
    cp -a -- "$source" "$folder" || return 1
  done
}
while read -r words; do
  # shellcheck disable=SC2086 # Several words.
  check "COPY $words" copy $words
done < <(first_stage COPY)
while read -r command; do
  check "RUN ${command%% *}" env -C "$context" GRUS_COMMIT="$commit" SOURCE_DATE_EPOCH="$epoch" sh -c "$command"
done < <(first_stage RUN)
check "the second stage copies the result" equals '--from=build /src/root /' last_stage COPY
content() { (cd -- "$1" && find . -mindepth 1 -printf '%P %y %m %T@ %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
check "it is what the archive holds, byte for byte" diff <(content "$root") <(content "$context/root")
check "the Dockerfile's user is the archive's" equals "$(value User "$config")" last_stage USER
check "its entry point too" equals "[\"$(value Entrypoint "$config")\"]" last_stage ENTRYPOINT
keys() { "$@" | grep -oE 'org\.opencontainers\.image\.[a-z]+' | sort; }
check "its labels too" equals "$(keys cat "$config")" keys last_stage LABEL
check "its version is that of the sources" prints "^GRUS_VERSION=$(value org.opencontainers.image.version "$config")\$" last_stage ARG

# What only headers bring in is in the SBOM too: each package whose headers were compiled, by its source package.
mapfile -t headers < <(ninja -C "$context/build/release" -t deps | sed -nE 's|^ +(/usr/.*)|\1|p' | sort -u | xargs -r realpath)
unlisted() {
  # shellcheck disable=SC2016 # dpkg-query's own variable.
  comm -23 <(installed "${headers[@]}" | cut -d' ' -f3 | sort -u) \
    <(listed 'LINK|DEPENDS' | cut -d' ' -f1 | xargs dpkg-query -W -f '${source:Package}\n' | sort -u)
}
check "many headers were compiled" test "${#headers[@]}" -gt 500
check "each is of a package in the SBOM; linux has but numbers" equals linux unlisted

# --- the commit that the manager names
repository=$state/repository
for folder in "$repository" "$repository/inner"; do
  install -D -m 644 -- controllers/version/version.cc.in "$folder/controllers/version/version.cc.in"
done
mkdir -- "$state/version"
git_there() { git -C "$repository" -c user.name=test -c user.email=test@example.com "$@"; }
named() { # named FOLDER [COMMIT]: what version.cc says of the sources there.
  cmake -DVERSION=1.2.3 -DSOURCE="$1" -DCOMMIT="${2-}" -DOUT="$state/version" -P cmake/GrusCommit.cmake &&
    sed -nE 's/.*kCommit = "(.*)";/\1/p' "$state/version/version.cc"
}
check "sources without git are of an unknown commit" equals unknown named "$repository"
make_repository() { git_there init -q && git_there add . && git_there commit -qm first; }
need "a repository" make_repository
head=$(git_there rev-parse HEAD)
check "a commit is named by 7 digits" equals "${head:0:7}" named "$repository"
written_again() { touch -d @1 "$state/version/version.cc" && named "$repository" >/dev/null && stat -c %Y "$state/version/version.cc"; }
check "the file is written only when the commit changes" equals 1 written_again
check "sources in the tree of others are not of their commit" equals unknown named "$repository/inner"
touch "$repository/new.cc"
check "a new file is a change" equals "${head:0:7}-dirty" named "$repository"
check "what was said counts more" equals 0123456-dirty named "$repository" 0123456789-dirty
check "and must be a commit" fails named "$repository" latest

finish
