#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The chart's alerts, with a real promtool: each fires when it is due and not otherwise. Then against /metrics of a
# manager that runs: the alerts are tried with metrics and labels that it has, and each query of the dashboards finds
# something. Takes about a minute.
# shellcheck disable=SC2317 # check() calls the functions.
set -uo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." || exit

name=monitoring
# shellcheck source=tests/charts/cluster.sh
source tests/charts/cluster.sh
promtool=tests/charts/promtool
need "promtool is built" "$promtool" --version

# --- the alerts
rules() { # rules FLAG...: as Prometheus reads them from a file.
  render --show-only templates/prometheusrule.yaml --set metrics.prometheusRule.enabled=true "$@" 2>/dev/null |
    sed -n '/^spec:/,$p' | sed '1d; s/^  //'
}
summaries() { # Without descriptions, which the test would only repeat.
  awk '{match($0, /^ */)} skip && RLENGTH > skip {next} {skip = /^ *description: >-$/ ? RLENGTH : 0} !skip'
}
read_rules() { # read_rules FLAG...: promtool takes them, and nothing is left to fill in.
  rules "$@" >"$GRUS_STATE/checked.yaml"
  "$promtool" check rules --lint=all --lint-fatal "$GRUS_STATE/checked.yaml" || return 1
  ! grep -n '@' "$GRUS_STATE/checked.yaml"
}
check "the alerts are valid" read_rules
check "with everything set, too" read_rules --values tests/charts/everything.yaml
check "and without a memory limit" read_rules --set resources.limits=null
check "a selector of one's own" fails prints 'namespace="grus-system"' rules --set-string 'metrics.prometheusRule.selector=job="mine"'
check "labels of one's own" prints '^    release: prometheus$' render --show-only templates/prometheusrule.yaml \
  --set metrics.prometheusRule.enabled=true,metrics.prometheusRule.labels.release=prometheus

cp -- tests/charts/alerts_test.yaml "$GRUS_STATE"
tried() { # tried [SED-SCRIPT]: the alerts, changed, pass their tests.
  summaries <"$GRUS_STATE/alerts.yaml" | sed -E "${1:-}" >"$GRUS_STATE/rules.yaml"
  "$promtool" test rules "$GRUS_STATE/alerts_test.yaml"
}
rules >"$GRUS_STATE/alerts.yaml"
check "each fires when it is due, and otherwise not" tried
mapfile -t alerts < <(sed -n 's/^ *- alert: //p' "$GRUS_STATE/alerts.yaml")
check "there are some" test "${#alerts[@]}" -gt 10
# Both ends are tried, for each: alerts that never fire fail their tests, and alerts that always do.
failures() { # failures EXPRESSION: what promtool says when each alert has this one.
  awk -v expr="$1" '
    $1 == "expr:" {print "        expr: " expr; inside = 1; next}
    inside && /^        [a-z_]+:/ {inside = 0}
    !inside' "$GRUS_STATE/alerts.yaml" | summaries >"$GRUS_STATE/rules.yaml"
  "$promtool" check rules "$GRUS_STATE/rules.yaml" >/dev/null && "$promtool" test rules "$GRUS_STATE/alerts_test.yaml" 2>&1
}
unmet() { grep -A 1 "alertname: $2," <<<"$1" | grep -q "$3" || { echo "$1"; return 1; }; }   # FAILURES ALERT WANTED
never=$(failures 'vector(1) > 1')
always=$(failures 'vector(1)')
for alert in "${alerts[@]}"; do
  check "$alert: that it fires is tried" unmet "$never" "$alert" 'exp:\[$'
  check "$alert: that it does not is tried" unmet "$always" "$alert" 'exp:\[\]'
done
documented() { sed -nE 's/^### (Grus[A-Za-z]+)$/\1/p' docs/alerts.md; }
check "docs/alerts.md has each, and no other" equals "$(printf '%s\n' "${alerts[@]}")" documented

# --- the dashboards
dashboards=("$chart"/dashboards/*.json)
own_dashboards=("$chart"/dashboards/{jobs,manager,queues}.json)   # tests/charts/usage_test.sh asks what the others ask.
holds() { jq -e -s "$1" "${dashboards[@]}"; }   # holds CLAIM: of the list of them.
# shellcheck disable=SC2016 # jq's and Grafana's variables.
{
  check "dashboards have different ids and titles" holds '(map(.uid) | unique | length) == 6 and (map(.title) | unique | length) == 6'
  check "their panels have ids of their own" holds 'all(.[]; [.panels[].id] | length == (unique | length))'
  check "a title and a unit" holds 'all(.[].panels[]; .title != "" and (.type == "row" or .fieldConfig.defaults.unit != null))'
  check "and ask the data source that is chosen" holds 'all(.[].panels[].targets[]?; .datasource.uid == "${datasource}")'
  check "no two overlap" holds 'all(.[]; [.panels[].gridPos | . as $p | range(.y; .y + .h) as $y | range(.x; .x + .w) | [., $y]] |
    length == (unique | length))'
}

# --- a manager that has done what it has metrics for
start_cluster 8 team-a team-b
kube apply --server-side -f crds/generated >/dev/null
kube wait --for=condition=Established --timeout=30s -f crds/generated >/dev/null
kube create -f tests/charts/queues.yaml >/dev/null
start_manager --leader-elect --leader-elect-namespace=default --health-address=127.0.0.1:0
submit() { sed -E "s/(min)Replicas: .*/\1Replicas: $2/; s/(max|target)Replicas: .*/\1Replicas: 16/" \
  examples/elastic-bert/job.yaml | kube -n "$1" create -f -; }
metrics() { http "$(port metrics)" /metrics | tr -d '\r'; }   # With its numbers.
check "a job takes all GPUs" submit team-a 4
check "it has them" kube -n team-a wait ehj/elastic-bert --for=jsonpath='{.status.replicas.ready}'=16 --timeout=60s
check "one comes with a guarantee" submit team-b 8
check "it runs" kube -n team-b wait ehj/elastic-bert --for=jsonpath='{.status.replicas.ready}'=8 --timeout=90s
check "a notice was given" within 20 prints '^grus_queue_yield_notices_total' metrics
check "and a job was resized" within 20 prints '^grus_elastic_resizes_total' metrics
metrics | grep -E '^[a-z_]+(\{.*\})? [-+0-9.eInf]+$' >"$GRUS_STATE/metrics"
exported() { sed -E 's/[{ ].*//' "$GRUS_STATE/metrics" | sort -u; }
strangers() { # Of the names in the input, those that are not the manager's. `up` is Prometheus' own.
  sed -E 's/"[^"]*"//g; s/\{[^}]*\}//g; s/\[[^]]*\]//g; s/\b(by|on|without|ignoring) *\([^)]*\)//g' |
    grep -oE '\b[A-Za-z_][A-Za-z0-9_]* *\(?' | grep -v '(' | tr -d ' ' | grep -vxE 'and|or|unless|bool|offset|Inf|up' | sort -u |
    comm -23 - <(exported)
}
expressions() { awk '/^ *expr:/ {inside = 1} inside && /^        [a-df-z]/ {inside = 0} inside {sub(/^ *expr: *(\|-)?/, ""); print}' "$1"; }
check "names that are not the manager's are found" equals mystery_total strangers <<<'sum by (le) (rate(mystery_total{a="b"}[5m])) > 1'
# What the manager only exports where a Prometheus tells it what jobs use, and what grus-node-agent exports.
without_usage() { grep -vE '^grus_(job_(gpu|step)|node_gpu|gpu_part)' || true; }
alerts_strangers() { strangers < <(expressions "$GRUS_STATE/alerts.yaml") | without_usage; }
check "the alerts have none" equals "" alerts_strangers
# labelled: each name in the input with each of its labels.
labelled() {
  awk '{name = $0; sub(/[{ ].*/, "", name); print name
    for (rest = $0; match(rest, /[a-z_]+="/); rest = substr(rest, RSTART + RLENGTH)) {
      print name, substr(rest, RSTART, RLENGTH - 2)
    }}' | grep -vE ' (namespace|job|instance)$' | sort -u
}
unreal() { sed -nE "s/.*series: '([^']*)'.*/\\1/p" tests/charts/alerts_test.yaml | grep -v '^up{' | without_usage | labelled | comm -23 - <(labelled <"$GRUS_STATE/metrics"); }
check "they were tried with the manager's names and labels" equals "" unreal

# --- the dashboards, and their queries with Grafana's variables filled in
render --show-only templates/dashboards.yaml --set dashboards.enabled=true,dashboards.namespace=team-a 2>/dev/null |
  kube apply --server-side -f - >/dev/null
loaded() { kube -n team-a get configmap -l grafana_dashboard=1 -o json | jq -S -s '.[].items[].data[] | fromjson'; }
check "the ConfigMaps hold them" equals "$(jq -S . "${dashboards[@]}")" loaded
queries() { jq -r '.panels[].targets[]?.expr' "${own_dashboards[@]}" |
  sed -E 's/[$]namespace/grus-system/g; s/[$]job/grus-metrics/g; s/[$]__rate_interval/5m/g; s/[$](queue|pool)/.*/g'; }
check "there are some" test "$(queries | wc -l)" -gt 30
check "no other variables" fails prints '[$]' queries
check "none has a metric that is not the manager's" equals "" strangers < <(queries)
variables() { jq -r '.templating.list[].query.query? // empty' "${own_dashboards[@]}" | sed -E 's/^label_values\((.*), [a-z]+\)$/\1/'; }
check "nor has a variable" equals "" strangers < <(variables)
families() { sed -E 's/_(bucket|sum|count)$//' | sort -u; }
# Of a work queue's two durations one is that of the reconciles.
not_shown() { exported | families | comm -23 - <(queries | grep -oE '[a-z_]+' | families) | grep -vx workqueue_work_duration_seconds; }
check "each metric of the manager is on one" prints '^$' not_shown
answered() { # Prometheus finds something for each query of the input, in what the manager exported for an hour.
  {
    echo "tests: [{interval: 1m, input_series: ["
    sed -E "s/'/''/g; s/^([a-z_]+)\\{?/\\1{namespace=\"grus-system\", job=\"grus-metrics\", instance=\"a\", /
      s/, \\}? ?([^ ]+)\$/} \\1/; s/^(.*\\}) ([^ ]+)\$/{series: '\\1', values: '\\2x60'},/" "$GRUS_STATE/metrics"
    echo "], promql_expr_test: ["
    jq -R -r '{expr: "count(\(.)) > bool 0", eval_time: "1h", exp_samples: [{labels: "{}", value: 1}]} | tojson + ","'
    echo "]}]"
  } >"$GRUS_STATE/queries.yaml"
  "$promtool" test rules "$GRUS_STATE/queries.yaml"
}
check "each query finds something" answered < <(queries)
check "one with a label that is not there would not" fails answered <<<'sum(rate(grus_requests_total{verb="mystery"}[5m]))'

finish
