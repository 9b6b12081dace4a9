# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests to source: what a manager runs with as the chart's account. kube() is the caller's: kubectl as administrator.

# account_kubeconfig ADMIN NAMESPACE FILE: writes FILE, the kubeconfig ADMIN with the chart's account there as its user.
account_kubeconfig() {
  local token
  token=$(kube -n "$2" create token grus --duration=24h) || return 1
  cp -- "$1" "$3" || return 1
  kube --kubeconfig "$3" config unset users >/dev/null || return 1
  kube --kubeconfig "$3" config set-credentials account --token "$token" >/dev/null || return 1
  kube --kubeconfig "$3" config set-context --current --user account >/dev/null
}
# deployment_arguments NAMESPACE: those of the manager's Deployment, one a line; only its ports are free ones.
deployment_arguments() {
  kube -n "$1" get deployment grus -o 'jsonpath={range .spec.template.spec.containers[0].args[*]}{@}{"\n"}{end}' |
    sed -E 's/^(--(metrics|health)-address=):.*/\1127.0.0.1:0/'
}
