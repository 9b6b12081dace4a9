// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startNodeInit makes the node's namespaces and its link to the machine.
func (c *cluster) startNodeInit(p *process) error {
	// What is left of the one that died: its processes end a moment after it.
	var others []*process
	for _, other := range c.Processes {
		if other.OnNode {
			others = append(others, other)
		}
	}
	if err := errors.Join(stopAll(others), c.removeNode()); err != nil {
		return err
	}
	if err := os.Remove(c.nodeReady()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	waits, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer tell.Close()
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.ExtraFiles = nodeEnv(), []*os.File{waits}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: nodeNamespaces}
	err = p.launch(cmd, c.folder, cmd.Start)
	waits.Close()
	// It does nothing before the state names it, or `down` would not know it if we died here.
	if err := errors.Join(err, c.save()); err != nil {
		return err
	}
	if err := makeCgroups(c.id()); err != nil {
		return err
	}
	if err := c.linkNode(p.Pid); err != nil {
		return err
	}
	_, err = tell.Write([]byte{1})
	return err
}

func (c *cluster) nodeReady() string { return filepath.Join(c.nodeFolder(), "ready") }

// errSubnetTaken says that another cluster has chosen the same subnet meanwhile.
var errSubnetTaken = errors.New("another interface has the subnet of the real node")

// linkNode makes the pair of interfaces. Of two clusters with one subnet the second fails at the route to the pods.
func (c *cluster) linkNode(pid int) error {
	link := c.id()
	err := ip(fmt.Sprintf("link add %s type veth peer name eth0 netns %d", link, pid),
		fmt.Sprintf("address add %s/30 dev %s", c.RealNode.machineIP(), link),
		"link set "+link+" up",
		fmt.Sprintf("route add %s via %s dev %s", c.RealNode.podCIDR(), c.RealNode.nodeIP(), link))
	if err != nil && strings.Contains(err.Error(), "File exists") {
		return fmt.Errorf("%w: %w", errSubnetTaken, err)
	}
	return err
}

// removeNode removes what a dead node leaves outside its folder.
func (c *cluster) removeNode() error {
	if _, err := net.InterfaceByName(c.id()); err == nil {
		// It goes by itself with the node's end, a moment after the node: then it may be gone by now.
		if err := ip("link delete " + c.id()); err != nil {
			if _, there := net.InterfaceByName(c.id()); there == nil {
				return err
			}
		}
	}
	return removeCgroups(c.id())
}

// stop ends all processes of the cluster. The kernel ends those of the node with the first of them.
func (c *cluster) stop() error {
	if first := c.process(nodeInitName); first != nil {
		first.signal(syscall.SIGKILL)
	}
	if err := stopAll(c.Processes); err != nil {
		return err
	}
	if c.RealNode == nil {
		return nil
	}
	return c.removeNode()
}

func (c *cluster) waitForNodeInit() error {
	if c.RealNode == nil {
		return nil
	}
	return c.waitFor("node "+realNodeName, []*process{c.process(nodeInitName)}, func() bool {
		_, err := os.Stat(c.nodeReady())
		return err == nil
	})
}

// serveNode makes containerd and the API server ready for the node's other programs.
func (c *cluster) serveNode(api *apiClient) error {
	first := c.process(nodeInitName)
	err := c.waitFor("containerd", []*process{first, c.process("containerd")}, func() bool {
		return first.inside(func() error {
			connection, err := net.Dial("unix", containerdSocket)
			if err == nil {
				connection.Close()
			}
			return err
		}) == nil
	})
	if err != nil {
		return err
	}
	if err := c.loadPauseImage(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	if err := create(ctx, api, rbacPath+"clusterroles", corednsRole); err != nil {
		return fmt.Errorf("create the role of CoreDNS: %w", err)
	}
	if err := create(ctx, api, rbacPath+"clusterrolebindings", corednsBinding); err != nil {
		return fmt.Errorf("bind the role of CoreDNS: %w", err)
	}
	return nil
}

const (
	rbacPath    = "/apis/rbac.authorization.k8s.io/v1/"
	corednsUser = "system:coredns"
)

var corednsRole = object{
	"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": corednsUser},
	"rules": []object{
		{"apiGroups": []string{""}, "resources": []string{"services", "pods", "namespaces"}, "verbs": []string{"list", "watch"}},
		{"apiGroups": []string{"discovery.k8s.io"}, "resources": []string{"endpointslices"}, "verbs": []string{"list", "watch"}},
	},
}

var corednsBinding = object{
	"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": corednsUser},
	"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": corednsUser},
	"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": corednsUser}},
}

// settleNode waits until pods fit on the node, with its GPUs.
func (c *cluster) settleNode(api *apiClient) error {
	started, err := c.process("kubelet").started()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	path, last := "/api/v1/nodes/"+realNodeName, "it has not registered"
	want := strconv.Itoa(c.RealNode.GPUs)
	ready := func() bool {
		var n node
		if err := api.do(ctx, http.MethodGet, path, "", nil, &n); err != nil {
			last = err.Error()
			return false
		}
		// The kubelet takes away resources that it does not know when it registers, which is before its first report.
		if !n.usable() || n.reported().Before(started.Truncate(time.Second)) {
			last = "it is not Ready"
			return false
		}
		if n.Status.Allocatable[gpuResource] == want && n.Status.Capacity[gpuResource] == want {
			return true
		}
		// From then on it keeps what somebody else has written.
		gpus := object{gpuResource: want}
		if err := api.do(ctx, http.MethodPatch, path+"/status", "application/merge-patch+json",
			object{"status": object{"capacity": gpus, "allocatable": gpus}}, nil); err != nil {
			last = err.Error()
		}
		return false
	}
	if err := c.waitFor("node "+realNodeName, c.Processes, ready); err != nil {
		return fmt.Errorf("%w (%s)", err, last)
	}
	return nil
}
