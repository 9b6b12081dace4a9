// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"time"
)

const (
	kwokAnnotation      = "kwok.x-k8s.io/node"
	kwokAnnotationValue = "fake"
	gpuResource         = "nvidia.com/gpu"
	gpuProductLabel     = "nvidia.com/gpu.product"
	gpuProduct          = "NVIDIA-A100-SXM4-80GB"
	notReadyTaint       = "node.kubernetes.io/not-ready"
	nodeRequests        = 16 // In flight at once.
)

// node is the part of a Node that we read or write.
type node struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   nodeMeta `json:"metadata"`
	Spec       struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints,omitempty"`
	} `json:"spec"`
	Status nodeStatus `json:"status"`
}

type nodeMeta struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type nodeStatus struct {
	Capacity    map[string]string `json:"capacity,omitempty"`
	Allocatable map[string]string `json:"allocatable,omitempty"`
	Conditions  []struct {
		Type      string    `json:"type"`
		Status    string    `json:"status"`
		Heartbeat time.Time `json:"lastHeartbeatTime"`
	} `json:"conditions,omitempty"`
}

// reported is when the kubelet last said how the node is.
func (n *node) reported() time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Heartbeat
		}
	}
	return time.Time{}
}

// usable says whether pods can be scheduled here: the taint goes a moment after the node is Ready.
func (n *node) usable() bool {
	for _, t := range n.Spec.Taints {
		if t.Key == notReadyTaint {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// nodePlan is what `cluster nodes` was asked for.
type nodePlan struct {
	prefix string
	count  int
	gpus   int
	labels map[string]string // Beside those that every node gets.
}

func (p *nodePlan) node(index int) *node {
	n := &node{APIVersion: "v1", Kind: "Node"}
	n.Metadata.Name = p.prefix + "-" + strconv.Itoa(index)
	n.Metadata.Annotations = map[string]string{kwokAnnotation: kwokAnnotationValue}
	n.Metadata.Labels = map[string]string{
		"kubernetes.io/hostname": n.Metadata.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "kwok",
	}
	resources := map[string]string{"cpu": "96", "memory": "1Ti", "pods": "256"}
	if p.gpus > 0 {
		n.Metadata.Labels[gpuProductLabel] = gpuProduct
		resources[gpuResource] = strconv.Itoa(p.gpus)
	}
	for k, v := range p.labels {
		n.Metadata.Labels[k] = v
	}
	n.Status.Capacity, n.Status.Allocatable = resources, resources
	return n
}

// settle makes the nodes of the prefix what the plan says and waits until pods fit on them.
// It returns how many were added, changed and removed.
func (p *nodePlan) settle(c *cluster, deadline time.Duration) (added, changed, removed int, err error) {
	api, err := c.client(c.Ports.APIServer)
	if err != nil {
		return 0, 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	have, err := p.list(ctx, api)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("list nodes: %w", err)
	}
	var jobs []func() error
	for i := range p.count {
		want := p.node(i)
		switch old, ok := have[i]; {
		case !ok:
			added++
			jobs = append(jobs, func() error { return createNode(ctx, api, want) })
		case differs(old, want):
			changed++
			jobs = append(jobs, func() error { return changeNode(ctx, api, want) })
		}
	}
	for i, old := range have {
		if i >= p.count {
			removed++
			jobs = append(jobs, func() error { return deleteNode(ctx, api, old.Metadata.Name) })
		}
	}
	if err := inParallel(jobs); err != nil {
		return 0, 0, 0, err
	}
	for {
		have, err := p.list(ctx, api)
		if err == nil && len(have) == p.count && p.notUsable(have) == "" {
			return added, changed, removed, nil
		}
		if dead := firstDead(c.Processes); dead != nil {
			return 0, 0, 0, fmt.Errorf("wait for nodes: %s is dead, see %s", dead.Name, dead.Log)
		}
		if ctx.Err() != nil {
			return 0, 0, 0, fmt.Errorf("wait for nodes: %s is not Ready after %s; see %s", p.notUsable(have), deadline,
				c.process("kwok").Log)
		}
		// A list of many nodes is work for the server, which has the nodes to look after.
		time.Sleep(100*time.Millisecond + time.Duration(p.count)*time.Millisecond/4)
	}
}

// list returns the kwok nodes of the prefix by their number.
func (p *nodePlan) list(ctx context.Context, api *apiClient) (map[int]*node, error) {
	var all struct {
		Items []*node `json:"items"`
	}
	if err := api.do(ctx, http.MethodGet, "/api/v1/nodes", "", nil, &all); err != nil {
		return nil, err
	}
	name := regexp.MustCompile("^" + regexp.QuoteMeta(p.prefix) + "-(0|[1-9][0-9]*)$")
	ours := map[int]*node{}
	for _, n := range all.Items {
		match := name.FindStringSubmatch(n.Metadata.Name)
		if match == nil || n.Metadata.Annotations[kwokAnnotation] != kwokAnnotationValue {
			continue
		}
		if i, err := strconv.Atoi(match[1]); err == nil {
			ours[i] = n
		}
	}
	return ours, nil
}

func (p *nodePlan) notUsable(have map[int]*node) string {
	for i := range p.count {
		if n, ok := have[i]; !ok || !n.usable() {
			return p.prefix + "-" + strconv.Itoa(i)
		}
	}
	return ""
}

func differs(old, want *node) bool {
	for k, v := range want.Metadata.Labels {
		if old.Metadata.Labels[k] != v {
			return true
		}
	}
	return old.Status.Allocatable[gpuResource] != want.Status.Allocatable[gpuResource] ||
		old.Status.Capacity[gpuResource] != want.Status.Capacity[gpuResource]
}

func createNode(ctx context.Context, api *apiClient, n *node) error {
	if err := api.do(ctx, http.MethodPost, "/api/v1/nodes", "application/json", n, nil); err != nil {
		return fmt.Errorf("create node %s: %w", n.Metadata.Name, err)
	}
	return nil
}

func changeNode(ctx context.Context, api *apiClient, n *node) error {
	const mergePatch = "application/merge-patch+json"
	path := "/api/v1/nodes/" + n.Metadata.Name
	err := api.do(ctx, http.MethodPatch, path, mergePatch, object{"metadata": object{"labels": n.Metadata.Labels}}, nil)
	if err == nil {
		var gpus any // null removes the resource.
		if v, ok := n.Status.Allocatable[gpuResource]; ok {
			gpus = v
		}
		resources := object{gpuResource: gpus}
		err = api.do(ctx, http.MethodPatch, path+"/status", mergePatch,
			object{"status": object{"capacity": resources, "allocatable": resources}}, nil)
	}
	if err != nil {
		return fmt.Errorf("change node %s: %w", n.Metadata.Name, err)
	}
	return nil
}

func deleteNode(ctx context.Context, api *apiClient, name string) error {
	err := api.do(ctx, http.MethodDelete, "/api/v1/nodes/"+name, "", nil, nil)
	var answer *apiError
	if errors.As(err, &answer) && answer.status == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return nil
}

// inParallel runs all jobs, a bounded number at once, and returns the first error.
func inParallel(jobs []func() error) error {
	var wg sync.WaitGroup
	queue := make(chan func() error)
	failures := make(chan error, nodeRequests)
	for range nodeRequests {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var first error
			for job := range queue {
				if err := job(); err != nil && first == nil {
					first = err
				}
			}
			failures <- first
		}()
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	wg.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
