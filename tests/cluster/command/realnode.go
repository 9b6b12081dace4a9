// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	realNodeName     = "real-0"
	realNodeLabels   = "grus.test/real=true," + gpuProductLabel + "=Fake"
	nodeInitName     = "node-init"
	pauseImage       = "localhost/grus-pause:1"
	containerdSocket = "/run/containerd/containerd.sock" // On the node.
)

// realNode is the one node of a cluster that runs containers: in namespaces of its own, which it has from its first
// process, node-init (nodeinit.go). Its link to the machine is a pair of virtual interfaces.
type realNode struct {
	GPUs   int `json:"gpus"`
	Subnet int `json:"subnet"`
}

// The addresses lie in the range for benchmarks (RFC 2544), which no network should use, and outside of those of
// Services and of kwok's pods and nodes.
func (n *realNode) machineIP() string { return fmt.Sprintf("198.18.%d.1", n.Subnet) }
func (n *realNode) nodeIP() string    { return fmt.Sprintf("198.18.%d.2", n.Subnet) }
func (n *realNode) podCIDR() string   { return fmt.Sprintf("198.19.%d.0/24", n.Subnet) }

// id tells what belongs to this cluster's node and stands outside its folder: the cgroup and the machine's interface.
// It follows from the folder, so that also `down` of a half-made cluster knows it.
func (c *cluster) id() string {
	hash := sha256.Sum256([]byte(c.folder))
	return "grus" + hex.EncodeToString(hash[:4])
}

func (c *cluster) nodeFolder() string { return filepath.Join(c.folder, "node") }

// chooseSubnet takes one that no interface of this machine is in.
func (n *realNode) chooseSubnet() error {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for range 256 {
		n.Subnet = rand.IntN(256)
		link := netip.MustParsePrefix(n.machineIP() + "/30")
		if !slices.ContainsFunc(addresses, func(a net.Addr) bool {
			taken, err := netip.ParsePrefix(a.String())
			return err == nil && taken.Overlaps(link)
		}) {
			return nil
		}
	}
	return errors.New("find a subnet for the real node: none of 198.18.0.0/16 is free")
}

// findProgram looks also where an ordinary user's path does not lead.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for _, folder := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is missing", name)
}

// cniFolder is where the distribution keeps the CNI plugins: Debian, then everybody else.
func cniFolder() (string, error) {
	for _, folder := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(filepath.Join(folder, "bridge")); err == nil {
			return folder, nil
		}
	}
	return "", errors.New("the CNI plugins are missing")
}

// checkMachine names all that a real node lacks here.
func checkMachine(s settings) error {
	if os.Geteuid() != 0 {
		return errors.New("a real node needs root; run as root, or leave out --real-node")
	}
	var lacking []string
	for _, name := range []string{
		"containerd", "ctr", "containerd-shim-runc-v2", "runc", "iptables", "iptables-restore", "conntrack", "ip", "mount",
	} {
		if _, err := findProgram(name); err != nil {
			lacking = append(lacking, name)
		}
	}
	if _, err := cniFolder(); err != nil {
		lacking = append(lacking, "the CNI plugins")
	}
	if len(lacking) > 0 {
		return fmt.Errorf("a real node needs what is missing here: %s; install it with: scripts/install-packages --real-node",
			strings.Join(lacking, ", "))
	}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		return errors.New("a real node needs the kernel's br_netfilter; load it with: modprobe br_netfilter")
	}
	if setnsCall == 0 {
		return errors.New("a real node is not supported on this processor")
	}
	for _, path := range []string{s.state, s.cache} {
		for _, hidden := range hiddenFolders {
			if strings.HasPrefix(path+"/", hidden+"/") {
				return fmt.Errorf("%s is not visible from a real node, which has its own %s; "+
					"set GRUS_STATE and GRUS_CACHE to other folders", path, hidden)
			}
		}
	}
	return nil
}

// prepareNode writes what the node's programs read and adds them to the cluster's processes.
func (c *cluster) prepareNode(programs map[string]*binary) error {
	folder := c.nodeFolder()
	if err := os.MkdirAll(filepath.Join(folder, "cni"), 0o700); err != nil {
		return err
	}
	cni, err := cniFolder()
	if err != nil {
		return err
	}
	for name, text := range c.nodeConfigs(cni) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	server := fmt.Sprintf("https://%s:%d", c.RealNode.machineIP(), c.Ports.APIServer)
	for _, user := range []string{"kubelet", "kube-proxy", "coredns"} {
		if err := writeKubeconfig(filepath.Join(folder, user+".kubeconfig"), c.certs(), user, "grus-"+c.Name, server); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	containerd, err := findProgram("containerd")
	if err != nil {
		return err
	}
	add := func(name, path string, args ...string) {
		c.Processes = append(c.Processes, &process{
			Name: name, Path: path, Args: args, Log: filepath.Join(c.folder, "logs", name+".log"), OnNode: name != nodeInitName,
		})
	}
	add(nodeInitName, self, nodeInitName, folder, c.RealNode.nodeIP()+"/30", c.RealNode.machineIP())
	add("containerd", containerd, "--config="+filepath.Join(folder, "containerd.toml"))
	add("coredns", programs["coredns"].path, "-conf="+filepath.Join(folder, "Corefile"))
	add("kubelet", programs["kubelet"].path,
		"--config="+filepath.Join(folder, "kubelet.yaml"), "--kubeconfig="+filepath.Join(folder, "kubelet.kubeconfig"),
		"--hostname-override="+realNodeName, "--node-ip="+c.RealNode.nodeIP(), "--node-labels="+realNodeLabels)
	add("kube-proxy", programs["kube-proxy"].path,
		"--kubeconfig="+filepath.Join(folder, "kube-proxy.kubeconfig"), "--hostname-override="+realNodeName,
		"--proxy-mode=iptables", "--cluster-cidr="+c.RealNode.podCIDR(),
		"--conntrack-max-per-core=0") // The table is the machine's.
	return nil
}
