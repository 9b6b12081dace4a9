// SPDX-License-Identifier: Apache-2.0

// The kubelet's own device manager, without the kubelet: it does what commands on standard input say, and answers each
// with one line of JSON. All paths are the kubelet's own, below /var/lib/kubelet.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

const usage = `commands:
  start, stop, restart              the device manager; restart: a new one, with the checkpoint of the last
                                    "microseconds": when its socket was there, since 1970
  await RESOURCE COUNT              until so many are allocatable
  capacity                          "capacity" and "allocatable" by resource
  allocate POD RESOURCE=N...        for its only container; a pod is active from then on
  run POD                           what its container gets at each start: "environment", "devices"
  held POD                          "devices" by resource
  remove POD                        it is active no more
  quit`

type answer struct {
	Error        string              `json:"error,omitempty"`
	Microseconds int64               `json:"microseconds,omitempty"`
	Capacity     map[string]int64    `json:"capacity,omitempty"`
	Allocatable  map[string]int64    `json:"allocatable,omitempty"`
	Environment  map[string]string   `json:"environment,omitempty"`
	Devices      map[string][]string `json:"devices,omitempty"`
	Number       int                 `json:"answer"` // Of the command. Last, so that it ends the line.
}

type host struct {
	manager *devicemanager.ManagerImpl
	started time.Time // Its socket was there.
	pods    map[string]*v1.Pod
}

type alwaysReady struct{}

func (alwaysReady) AddSource(string) {}
func (alwaysReady) AllReady() bool   { return true }

func (h *host) activePods() []*v1.Pod {
	var pods []*v1.Pod
	for _, pod := range h.pods {
		pods = append(pods, pod)
	}
	return pods
}

func (h *host) start() error {
	manager, err := devicemanager.NewManagerImpl(nil, topologymanager.NewFakeManager())
	if err != nil {
		return err
	}
	if err := manager.Start(klog.Background(), h.activePods, alwaysReady{}, containermap.NewContainerMap(), sets.New[string]()); err != nil {
		return err
	}
	h.started = time.Now()
	h.manager = manager
	return nil
}

func (h *host) stop() error {
	if h.manager == nil {
		return nil
	}
	err := h.manager.Stop(klog.Background())
	h.manager = nil
	return err
}

func numbers(list v1.ResourceList) map[string]int64 {
	all := map[string]int64{}
	for name, quantity := range list {
		all[string(name)] = quantity.Value()
	}
	return all
}

func (h *host) await(name string, count int64) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, allocatable, _ := h.manager.GetCapacity()
		if quantity := allocatable[v1.ResourceName(name)]; quantity.Value() == count {
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("%s are allocatable, not %d", quantity.String(), count)
		}
	}
}

func (h *host) allocate(name string, wanted []string) error {
	limits := v1.ResourceList{}
	for _, word := range wanted {
		key, count, _ := strings.Cut(word, "=")
		quantity, err := resource.ParseQuantity(count)
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
		limits[v1.ResourceName(key)] = quantity
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	pod.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Limits: limits, Requests: limits}}}
	h.pods[name] = pod
	if err := h.manager.Allocate(pod, &pod.Spec.Containers[0]); err != nil {
		delete(h.pods, name) // The kubelet does not admit it.
		return err
	}
	return nil
}

func (h *host) run(pod *v1.Pod) (answer, error) {
	options, err := h.manager.GetDeviceRunContainerOptions(context.Background(), pod, &pod.Spec.Containers[0])
	if err != nil || options == nil {
		return answer{}, err
	}
	got := answer{Environment: map[string]string{}, Devices: map[string][]string{}}
	for _, env := range options.Envs {
		got.Environment[env.Name] = env.Value
	}
	for _, device := range options.Devices {
		got.Devices["host"] = append(got.Devices["host"], device.PathOnHost)
	}
	for _, mount := range options.Mounts {
		got.Devices["mounts"] = append(got.Devices["mounts"], fmt.Sprintf("%s:%s:%t", mount.HostPath, mount.ContainerPath, mount.ReadOnly))
	}
	return got, nil
}

func (h *host) held(pod *v1.Pod) answer {
	all := answer{Devices: map[string][]string{}}
	for name, devices := range h.manager.GetDevices(string(pod.UID), "main") {
		for id := range devices {
			all.Devices[name] = append(all.Devices[name], id)
		}
		sort.Strings(all.Devices[name])
	}
	return all
}

func (h *host) obey(words []string) (answer, error) {
	command, rest := words[0], words[1:]
	switch {
	case command == "start" && len(rest) == 0:
		err := h.start()
		return answer{Microseconds: h.started.UnixMicro()}, err
	case command == "stop" && len(rest) == 0:
		return answer{}, h.stop()
	case command == "restart" && len(rest) == 0:
		if err := h.stop(); err != nil {
			return answer{}, err
		}
		err := h.start()
		return answer{Microseconds: h.started.UnixMicro()}, err
	case h.manager == nil:
		return answer{}, fmt.Errorf("%s: not started", command)
	case command == "capacity" && len(rest) == 0:
		capacity, allocatable, _ := h.manager.GetCapacity()
		return answer{Capacity: numbers(capacity), Allocatable: numbers(allocatable)}, nil
	case command == "await" && len(rest) == 2:
		count, err := strconv.ParseInt(rest[1], 10, 64)
		if err != nil {
			return answer{}, err
		}
		return answer{}, h.await(rest[0], count)
	case command == "allocate" && len(rest) >= 2:
		return answer{}, h.allocate(rest[0], rest[1:])
	case len(rest) == 1 && h.pods[rest[0]] == nil:
		return answer{}, fmt.Errorf("there is no pod %s", rest[0])
	case command == "run" && len(rest) == 1:
		return h.run(h.pods[rest[0]])
	case command == "held" && len(rest) == 1:
		return h.held(h.pods[rest[0]]), nil
	case command == "remove" && len(rest) == 1:
		delete(h.pods, rest[0])
		return answer{}, nil
	}
	return answer{}, fmt.Errorf("%q: %s", strings.Join(words, " "), usage)
}

func main() {
	klog.SetLogger(logr.Discard())
	h := &host{pods: map[string]*v1.Pod{}}
	output := json.NewEncoder(os.Stdout)
	number := 0
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		words := strings.Fields(input.Text())
		if len(words) == 0 {
			continue
		}
		if words[0] == "quit" {
			break
		}
		got, err := h.obey(words)
		if err != nil {
			got = answer{Error: err.Error()}
		}
		number++
		got.Number = number
		_ = output.Encode(got)
	}
	_ = h.stop()
}
