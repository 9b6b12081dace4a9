# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by the benches that start a cluster; it calls their function kubectl.

# The garbage collector of Kubernetes learns of a new kind within half a minute, and until then fails again and again on
# its children: nothing that a cluster does in daily use. It knows the kind when it deletes a child.
await_garbage_collector() {
  kubectl apply -f - >/dev/null <<'END'
apiVersion: ai.centauruscloud.io/v1alpha1
kind: ElasticHorovodJob
metadata: {name: probe}
spec:
  launcherSpec: {image: probe, pythonCommand: [probe]}
  workersSpec: {image: probe}
END
  local uid
  uid=$(kubectl get elastichorovodjob probe -o 'jsonpath={.metadata.uid}')
  kubectl create configmap probe >/dev/null
  kubectl patch configmap probe --type merge -p "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":
    \"ai.centauruscloud.io/v1alpha1\",\"kind\":\"ElasticHorovodJob\",\"name\":\"probe\",\"uid\":\"$uid\"}]}}" >/dev/null
  kubectl delete elastichorovodjob probe >/dev/null
  kubectl wait --for=delete configmap/probe --timeout=120s
}
