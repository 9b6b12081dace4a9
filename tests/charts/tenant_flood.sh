# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # Variables of tenant_test.sh and cluster.sh.
# For tenant_test.sh --flood: what one tenant has much of, or changes often, and how long another waits meanwhile.

flood=$GRUS_STATE/flood
api=/apis/ai.centauruscloud.io/v1alpha1/namespaces/team-b
gangs=/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-b/podgroups
streams=16   # Processes of curl, each with one connection: an answer takes a while.

ready_to_flood() { # mallory's requests are made with the administrator's certificate.
  local field
  mkdir -p -- "$flood"
  for field in clusters:cluster.certificate-authority users:user.client-certificate users:user.client-key; do
    kube config view --raw --minify --flatten -o "jsonpath={.${field%:*}[0].${field#*:}-data}" |
      base64 -d >"$flood/${field##*[.-]}.pem"
  done
  [[ -s $flood/authority.pem && -s $flood/certificate.pem && -s $flood/key.pem ]]
}
# send RATE: requests, of lines METHOD, path and JSON, separated by tabs; prints the codes of the answers. 0: no limit.
send() {
  local part each=() pids=()
  cat >"$flood/lines"
  (($1 == 0)) || each=(--rate "$(($1 / streams))/s")
  for ((part = 0; part < streams; part++)); do
    awk -F '\t' -v part="$part" -v streams="$streams" -v server="$server" -v files="$flood" 'NR % streams == part {
        gsub(/["\\]/, "\\\\&", $3)
        if (count++) print "next"
        printf "request = %s\nurl = \"%s%s\"\ndata = \"%s\"\n", $1, server, $2, $3
        printf "cacert = \"%s/authority.pem\"\ncert = \"%s/certificate.pem\"\nkey = \"%s/key.pem\"\n", files, files, files
        printf "header = \"Impersonate-User: mallory\"\nheader = \"Content-Type: application/%sjson\"\n",
          $1 == "PATCH" ? "merge-patch+" : ""
        print "silent\noutput = /dev/null\nwrite-out = \"%{http_code}\\n\""
      }' "$flood/lines" >"$flood/config.$part"
    stdbuf -oL curl "${each[@]}" --config "$flood/config.$part" >"$flood/codes.$part" &
    pids+=($!)
  done
  wait "${pids[@]}"
}
answers() { cat "$flood"/codes.* | grep -c "^$1$"; }   # answers CODE: how many there were.
many() { # many COUNT PATH KIND NAME [JQ]: so many objects to create, called NAME-0, NAME-1, ...
  object "$3" "$4-@" "${5:-.}" | jq -c . | awk -v count="$1" -v path="$2" '{
    for (i = 0; i < count; i++) { one = $0; sub(/@/, i, one); print "POST\t" path "\t" one }
  }'
}
that_wait() { many 1500 "$api/elastichorovodjobs" job waits '.spec.workersSpec += {minReplicas: 12, maxReplicas: 12, gpusPerWorker: 1}'; }
that_rest() {
  many 7000 "$api/elastichorovodjobs" job rests '.spec.runPolicy.suspend = true'
  many 1000 "$api/trialjobs" measured rests '.spec.suspend = true'
  many 500 "$gangs" group rests
}
changes() { # Of the jobs that wait, without an end.
  awk -v path="$api/elastichorovodjobs/waits-" 'BEGIN {
    for (i = 0; i < 30000; i++)
      printf "PATCH\t%s%d\t{\"spec\": {\"runPolicy\": {\"backoffLimit\": %d}}}\n", path, i % 1500, i % 1000 + 2
  }'
}
seen() { # seen NAME: milliseconds until a new job of team-a, called NAME, has its first status.
  local from=${EPOCHREALTIME/./}
  object job "$1" | kube -n team-a create -f - >/dev/null || return 1
  until [[ $(kube -n team-a get ehj "$1" -o 'jsonpath={.status.observedGeneration}') == 1 ]]; do
    ((${EPOCHREALTIME/./} - from < 60000000)) || break
  done
  echo $(((${EPOCHREALTIME/./} - from) / 1000))
  kube -n team-a delete ehj "$1" --wait=false >/dev/null
}
five_seen() { # five_seen NAME: the times of five jobs.
  local number
  for number in 1 2 3 4 5; do seen "tried-$1-$number"; done | paste -sd ' '
}
longest() { tr ' ' '\n' <<<"$1" | sort -n | tail -n 1; }
peak_mib() { awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/$manager_pid/status"; }
limit_mib() { sed -n '/^  limits:/,$s/^    memory: \([0-9]*\)Mi$/\1/p' "$chart/values.yaml"; }
are_looked_at() { # None of mallory's jobs has the status that it was created with.
  equals 0 eval "kube -n team-b get ehj,tj -o json | jq '[.items[] | select((.status.observedGeneration // 0) == 0)] | length'"
}

swept() { # A request may end before it has deleted all.
  local path
  for path in "$api/elastichorovodjobs" "$api/trialjobs" "$gangs"; do
    kube delete --raw "$path" >/dev/null 2>&1
    [[ $(kube get --raw "$path?limit=1") == *'"items":[]'* ]] || return 1
  done
}

run_flood() {
  local quiet busy before patches from=$SECONDS
  server=$(kube config view --raw --minify -o 'jsonpath={.clusters[0].cluster.server}')
  need "the flood has what it needs" ready_to_flood
  echo "      peak memory before: $(peak_mib) MiB"
  echo "      a job of team-a has a status after so many milliseconds, on a quiet cluster: $(five_seen quiet)"
  that_wait | send 0
  check "mallory has 1,500 jobs that wait" test "$(answers 201)" = 1500
  check "grus has looked at each" within 300 are_looked_at
  echo "      made and looked at in $((SECONDS - from)) s; peak memory: $(peak_mib) MiB"
  quiet=$(five_seen still)
  echo "      beside these jobs: $quiet"
  check "beside them, a job of team-a has a status within 5 s" test "$(longest "$quiet")" -le 5000

  changes | send 160 2>/dev/null &
  flood_pid=$!
  sleep 15   # It has begun, and the queue is as long as it gets.
  before=$(answers 200)
  from=${EPOCHREALTIME/./}
  busy=$(five_seen busy)
  sleep 5
  patches=$((($(answers 200) - before) * 1000000 / (${EPOCHREALTIME/./} - from)))
  echo "      while $patches jobs a second change: $busy"
  check "at least 60 jobs a second change" test "$patches" -ge 60
  check "while they do, a job of team-a has a status within 5 s" test "$(longest "$busy")" -le 5000
  check "the flood was still on" kill -0 "$flood_pid"
  pkill -P "$flood_pid"
  kill "$flood_pid" && wait "$flood_pid" 2>/dev/null

  from=$SECONDS
  that_rest | send 0
  check "mallory has 10,000 objects" test "$(answers 201)" = 8500
  check "grus has looked at each" within 600 are_looked_at
  echo "      8,500 more made and looked at in $((SECONDS - from)) s; peak memory: $(peak_mib) MiB of $(limit_mib)"
  check "the manager needed less memory than the chart allows" test "$(peak_mib)" -lt "$(limit_mib)"
  quiet=$(five_seen rest)
  echo "      beside 10,000 objects: $quiet"
  check "beside them, a job of team-a has a status within 5 s" test "$(longest "$quiet")" -le 5000
  check "they can be deleted" within 600 swept
  all_is_well flood
}
