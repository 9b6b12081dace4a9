// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/scripts.h"

namespace grus {

std::string WorkerScript() {
  return R"sh(set -e
umask 077
mkdir -p /tmp/grus
mkdir -p /run/sshd 2>/dev/null || true
cp /etc/grus/ssh/id_ed25519 /tmp/grus/host_key
exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f /dev/null -p )sh" +
         std::to_string(kSshPort) + R"sh( -h /tmp/grus/host_key \
  -o AuthorizedKeysFile=/etc/grus/ssh/authorized_keys -o StrictModes=no -o UsePAM=no -o PidFile=none \
  -o PasswordAuthentication=no -o PermitRootLogin=prohibit-password
)sh";
}

std::string LauncherScript(const api::ElasticHorovodJobSpec& spec, const Sizes& sizes) {
  std::string command;
  for (const std::string& word : spec.launcher.python_command) command.append(" ").append(word);
  const std::string min = std::to_string(sizes.NeededToRun() * sizes.slots);
  const std::string max = std::to_string(sizes.max * sizes.slots);
  // --network-interfaces: without it Horovod waits for two hosts, and a job of one never starts.
  // --blacklist-cooldown-range: without it a worker that failed once is never used again.
  return R"sh(set -e
umask 077
mkdir -p /tmp/grus
cp /etc/grus/ssh/id_ed25519 /tmp/grus/id_ed25519
exec horovodrun --gloo -np )sh" +
         min + " --min-np " + min + " --max-np " + max +
         " --host-discovery-script /etc/grus/hosts/discover_hosts.sh"
         " --network-interfaces \"${GRUS_NETWORK_INTERFACE:-eth0}\""
         " --blacklist-cooldown-range 5 60"
         " --ssh-port " +
         std::to_string(kSshPort) + " --ssh-identity-file /tmp/grus/id_ed25519" + command + "\n";
}

std::string DiscoveryScript() {
  return R"sh(#!/bin/sh
# Prints the hosts that Horovod may use, one NAME:SLOTS a line. Always succeeds: Horovod ends the job when the
# first call fails, and an empty answer is a legal one.
# "hosts" is the mounted host list, which the kubelet may deliver late; "pushed" comes with the pod itself and
# follows within a second. The higher revision counts.
revision() { sed -n '1s/^revision //p' "$1" 2>/dev/null; }
folder=/etc/grus/hosts
list=$folder/hosts
if [ -s "$folder/pushed" ]; then
  pushed=$(revision "$folder/pushed") mounted=$(revision "$list")
  [ "${pushed:-0}" -gt "${mounted:-0}" ] && list=$folder/pushed
fi
known=/tmp/grus/resolved
mkdir -p "$known" 2>/dev/null
tail -n +2 "$list" 2>/dev/null | while IFS= read -r line || [ -n "$line" ]; do
  name=${line%%:*}
  [ -n "$name" ] || continue
  # A name is handed on once it resolves: an ssh to a name not yet known would count as the host's failure.
  if [ ! -e "$known/$name" ] && command -v getent >/dev/null 2>&1; then
    getent hosts "$name" >/dev/null 2>&1 || continue
    { true >"$known/$name"; } 2>/dev/null  # Not ":", whose failed redirection would end the shell.
  fi
  echo "$line"
done
exit 0
)sh";
}

}  // namespace grus
