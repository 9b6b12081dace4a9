// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
)

// nodeConfigs are the configuration files of the node's programs by name.
func (c *cluster) nodeConfigs(cni string) map[string]string {
	folder, certs := c.nodeFolder(), c.certs()
	return map[string]string{
		// Without restrict_oom_score_adj runc fails where root lacks CAP_SYS_RESOURCE, as in most containers.
		"containerd.toml": fmt.Sprintf(`version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, pauseImage, cni, filepath.Join(folder, "cni")),

		// The machine has a route to the pods, so they need no masquerading.
		"cni/10-bridge.conflist": fmt.Sprintf(`{"cniVersion": "0.4.0", "name": "grus", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`, c.RealNode.podCIDR()),

		"Corefile": fmt.Sprintf(`.:53 {
  bind %s
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %s
    pods verified
    ttl 5
  }
  cache 5
}
`, c.RealNode.nodeIP(), filepath.Join(folder, "coredns.kubeconfig")),

		"kubelet.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%s
enforceNodeAllocatable: []
failSwapOn: false
containerRuntimeEndpoint: unix://%s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
clusterDNS: [%s]
clusterDomain: cluster.local
# Disk pressure of the machine is not what tests on this node are about.
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
resolvConf: /dev/null
volumePluginDir: /var/lib/kubelet/volumeplugins
`, c.id(), containerdSocket, filepath.Join(certs, "ca.crt"), filepath.Join(certs, "kubelet-serving.crt"),
			filepath.Join(certs, "kubelet-serving.key"), c.RealNode.nodeIP()),
	}
}
