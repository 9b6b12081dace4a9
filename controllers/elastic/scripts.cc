// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/scripts.h"

namespace grus {
namespace {

constexpr char kUsePatch[] =
    R"sh([ -n "${GRUS_PLAIN_HOROVOD:-}" ] || export PYTHONPATH="/etc/grus/job${PYTHONPATH:+:$PYTHONPATH}"
)sh";

// Python's tempfile needs a folder that it can write; with a read-only root file system there is no other.
constexpr char kTempFolder[] = R"sh([ -n "${TMPDIR:-}" ] || [ -w /tmp ] || export TMPDIR=/tmp/grus
)sh";

std::string Flag(const std::string& name, const std::optional<std::int32_t>& value) {
  return value ? " --" + name + " " + std::to_string(*value) : std::string();
}

}  // namespace

std::string WorkerScript() {
  // sessions: each training process leaves a file named after its shell's pid, for the preStop hook.
  // session: what ssh runs. sshd passes on neither the container's environment nor its umask.
  // MaxStartups: by default sshd drops connections from the eleventh on that are not logged in yet.
  // ClientAliveInterval: a launcher that vanished with its node leaves no session that the preStop hook waits for.
  // rm: files of the container's last run. The key's copy is read-only, and the pids belong to other processes now.
  return R"sh(set -e
rm -rf /tmp/grus/host_key /tmp/grus/sessions
mkdir -p /tmp/grus/sessions
chmod 755 /run/sshd 2>/dev/null || mkdir -p /run/sshd 2>/dev/null || true
)sh" + std::string(kTempFolder) +
         R"sh(umask >/tmp/grus/umask
(umask 077; export -p >/tmp/grus/environment; cp /etc/grus/job/host_key /tmp/grus/host_key)
cat >/tmp/grus/session <<'EOF'
shell=${SHELL:-/bin/sh}
: >"/tmp/grus/sessions/$$"
. /tmp/grus/environment
umask "$(cat /tmp/grus/umask)"
)sh" + std::string(kUsePatch) +
         R"sh(exec "$shell" -c "$SSH_ORIGINAL_COMMAND"
EOF
exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f /dev/null -p )sh" +
         std::to_string(kSshPort) +
         R"sh( -h /tmp/grus/host_key \
  -o AuthorizedKeysFile=/etc/grus/job/authorized_keys -o StrictModes=no -o UsePAM=no -o PidFile=none \
  -o PasswordAuthentication=no -o PermitRootLogin=prohibit-password -o MaxStartups=1000 \
  -o ClientAliveInterval=5 -o ForceCommand='/bin/sh /tmp/grus/session'
)sh";
}

std::string PreStopScript() {
  return R"sh(left=$1
while [ "$left" -gt 0 ]; do
  trains=
  for session in /tmp/grus/sessions/*; do [ ! -d "/proc/${session##*/}" ] || trains=yes; done
  [ -n "$trains" ] || exit 0
  sleep 1
  left=$((left - 1))
done
)sh";
}

std::string LauncherCommand(const api::ElasticHorovodJobSpec& spec, const Sizes& sizes) {
  std::string command;
  for (const std::string& word : spec.launcher.python_command) command.append(" ").append(word);
  // --min-np 1: below its minimum Horovod never restarts what died, and waits forever; grus itself enforces the job's
  //   minimum.
  // --network-interfaces: without it Horovod waits for two hosts, and a job of one host never starts.
  // --blacklist-cooldown-range: without it a worker that failed once is never used again. A first failure costs 2 to
  //   3 times the lower bound.
  // --gloo-timeout-seconds: a joining worker has this long to import its framework, or the others do not start. Horovod
  //   waits as long for peers that vanished silently.
  return "train() {\n  exec horovodrun --gloo -np " + std::to_string(sizes.NeededToRun() * sizes.slots) +
         " --min-np 1 --max-np " + std::to_string(sizes.max * sizes.slots) +
         " --host-discovery-script /etc/grus/hosts/discover_hosts.sh"
         " --network-interfaces \"${GRUS_NETWORK_INTERFACE:-eth0}\""
         " --blacklist-cooldown-range 2 60 --gloo-timeout-seconds \"${HOROVOD_GLOO_TIMEOUT_SECONDS:-60}\"" +
         Flag("elastic-timeout", spec.elastic.timeout_seconds) + Flag("reset-limit", spec.elastic.reset_limit) +
         " --ssh-port " + std::to_string(kSshPort) + " --ssh-identity-file /tmp/grus/id_ed25519" + command +
         "\n}\n. /etc/grus/job/launcher.sh\n";
}

std::string LauncherScript() {
  const std::string ssh = " -p " + std::to_string(kSshPort) + " -i /tmp/grus/id_ed25519";
  // ssh: of two equal options the first counts, so horovodrun's StrictHostKeyChecking=no does not. Without keep-alives,
  //   it notices a vanished node only after two hours. Each session leaves a file named after its process, for the
  //   discovery script.
  //   The first login leaves the file "connected": without it, no worker was lost.
  // At the end: if all workers are gone, or were exchanged for others, nobody has the training's state.
  return R"sh(mkdir -p /tmp/grus && (umask 077; cp /etc/grus/job/id_ed25519 /tmp/grus/id_ed25519) || exit 1
)sh" + std::string(kTempFolder) +
         R"sh(mkdir -p /tmp/grus/bin && cat >/tmp/grus/bin/ssh <<EOF && chmod +x /tmp/grus/bin/ssh || exit 1
#!/bin/sh
for word; do
  case \$word in *[!0-9.]*) ;; *.*.*.*) mkdir -p /tmp/grus/sessions/\$word; : >/tmp/grus/sessions/\$word/\$\$ ;; esac
done
exec $(command -v ssh || echo ssh) -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o ConnectTimeout=10 \
  -o HostKeyAlias=)sh" +
         std::string(kHostAlias) +
         R"sh( -o UserKnownHostsFile=/etc/grus/job/known_hosts -o GlobalKnownHostsFile=/dev/null \
  -o StrictHostKeyChecking=yes -o PermitLocalCommand=yes -o 'LocalCommand=: >/tmp/grus/connected' "\$@"
EOF
export PATH="/tmp/grus/bin:$PATH"
training= stopped=
trap 'stopped=yes; [ -z "$training" ] || kill "$training" 2>/dev/null' TERM INT
)sh" + std::string(kUsePatch) +
         R"sh(train &
training=$!
[ -z "$stopped" ] || kill "$training" 2>/dev/null
echo "$training" >/tmp/grus/training
# When all workers have failed, Horovod does not run the discovery script any more, and takes another minute to end. Run
# it here, so that it sees that all workers were exchanged.
(while sleep 2 && kill -0 "$training"; do /bin/sh /etc/grus/hosts/discover_hosts.sh; done) >/dev/null 2>&1 &
watch=$!
while :; do
  wait "$training"
  code=$?
  kill -0 "$training" 2>/dev/null || break
done
kill "$watch" 2>/dev/null
# Horovod sometimes counts processes that were stopped as successful: do not let the job become Succeeded.
[ -z "$stopped" ] || [ "$code" -ne 0 ] || code=143
# These codes are not horovodrun's to give.
case $code in )sh" +
         std::to_string(kWorkersLostExitCode) + "|" + std::to_string(kNodeRestartedExitCode) + R"sh() code=1 ;; esac
if [ "$code" -eq 0 ] || [ -n "$stopped" ] || [ ! -s /tmp/grus/hosts ]; then exit "$code"; fi
while read -r host; do
  (ssh -n)sh" +
         ssh + R"sh( -o BatchMode=yes -o ConnectTimeout=5 -- \
    "${host%%:*}" true \
    >/dev/null 2>&1 && : >/tmp/grus/reached) &
done </tmp/grus/hosts
wait
if [ ! -e /tmp/grus/connected ]; then
  echo "grus: no worker was ever reached with ssh (horovodrun: exit code $code): is there a network policy against port )sh" +
         std::to_string(kSshPort) + R"sh(, does the launcher's user have an entry in its image's /etc/passwd?" >&2
elif [ -e /tmp/grus/exchanged ] || [ ! -e /tmp/grus/reached ]; then
  echo "grus: all workers of this training were lost (horovodrun: exit code $code); it starts again with others" >&2
  exit )sh" +
         std::to_string(kWorkersLostExitCode) + R"sh(
fi
exit "$code"
)sh";
}

std::string DiscoveryScript() {
  return R"sh(#!/bin/sh
# Prints the hosts that Horovod may use: one ADDRESS:SLOTS a line, or nothing. Always exits with 0: Horovod ends the job
# if the first call fails.
# "hosts" is the mounted host list, which the kubelet may update a minute late. "pushed" is an annotation of the pod,
# which it updates within a second. Use the one with the higher revision.
revision() { sed -n '1s/^revision //p' "$1" 2>/dev/null; }
folder=/etc/grus/hosts
list=$folder/hosts
if [ -s "$folder/pushed" ]; then
  pushed=$(revision "$folder/pushed") mounted=$(revision "$list")
  [ "${pushed:-0}" -gt "${mounted:-0}" ] && list=$folder/pushed
fi
hosts=$(tail -n +2 "$list" 2>/dev/null | while read -r host pod || [ -n "$host" ]; do
  [ -z "$host" ] || echo "$host"
done)
# Note the hosts, and whether all were exchanged for others: the launcher reads that when the training has ended. An
# empty list does not count: Horovod waits, and goes on if the same hosts come back.
known=/tmp/grus/hosts
if [ -n "$hosts" ] && [ -s "$known" ]; then
  kept=
  while read -r host; do
    case "
$hosts
" in *"
$host
"*) kept=yes ;; esac
  done <"$known"
  if [ -n "$kept" ]; then
    rm -f /tmp/grus/disjoint
  else
    # Nodes that were cut off come back one after the other, and so do their workers: the known ones may be next. Until
    # then Horovod gets none, and waits.
    now=$(date +%s) since=$(cat /tmp/grus/disjoint 2>/dev/null)
    [ -n "$since" ] || { since=$now && { echo "$now" >/tmp/grus/disjoint; } 2>/dev/null; } || since=0
    [ $((now - since)) -ge 10 ] || exit 0
    # No worker has the training's state any more. Horovod would end only after a minute, and ignores SIGTERM until
    # then: kill it. ("true", because the shell would end if the redirection failed for ":".)
    { true >/tmp/grus/exchanged; } 2>/dev/null
    read -r training </tmp/grus/training && kill -KILL "$training"
  fi
fi
[ -n "$hosts" ] || rm -f /tmp/grus/disjoint
[ -z "$hosts" ] || {
  { echo "$hosts" >"$known.$$" && mv "$known.$$" "$known"; } 2>/dev/null  # At once, so that nobody reads half of it.
  # Horovod misses a change that comes while it handles another one: the new host would stay idle. While others train,
  # leave a host without a session out for three of each fifteen seconds: Horovod sees its return as another change.
  is_used() {
    for session in "/tmp/grus/sessions/${1%:*}"/*; do [ ! -d "/proc/${session##*/}" ] || return 0; done
    return 1
  }
  trains=
  for host in $hosts; do ! is_used "$host" || trains=yes; done
  now=$(date +%s)
  mkdir -p /tmp/grus/unused 2>/dev/null
  for host in $hosts; do
    unused=/tmp/grus/unused/${host%:*}
    if [ -z "$trains" ] || is_used "$host"; then
      rm -f "$unused"
    elif since=$(cat "$unused" 2>/dev/null); then
      [ $(((now - since) % 15)) -lt 12 ] || continue
    else
      { echo "$now" >"$unused"; } 2>/dev/null
    fi
    echo "$host"
  done
}
exit 0
)sh";
}

}  // namespace grus
