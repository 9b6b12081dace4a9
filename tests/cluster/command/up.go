// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	startDeadline = 90 * time.Second
	startAttempts = 4
)

// deadError is a process that ended while the cluster was starting.
type deadError struct {
	process *process
}

func (e *deadError) Error() string {
	return fmt.Sprintf("start cluster: %s ended; its last lines (%s):\n%s",
		e.process.Name, e.process.Log, e.process.logTail(8))
}

// bringUp makes the cluster in `folder` run: a new one with `more`, or what is dead of one that is there.
func bringUp(name, folder, source string, programs map[string]*binary, more features) (*cluster, error) {
	for attempt := 1; ; attempt++ {
		c, err := loadCluster(folder)
		if err != nil {
			return nil, err
		}
		fresh := c == nil
		if fresh {
			if c, err = newCluster(name, folder, source, programs, more); err != nil {
				return nil, err
			}
		}
		err = c.startDead()
		if err == nil {
			return c, nil
		}
		if !fresh {
			return nil, fmt.Errorf("%w\n(remedy: cluster down --name %s, then up)", err, name)
		}
		err = errors.Join(err, c.stop())
		c.forget()
		var dead *deadError
		taken := errors.Is(err, errSubnetTaken) || errors.As(err, &dead) && dead.process.portTaken()
		if !taken || attempt == startAttempts {
			return nil, err
		}
		fmt.Println("a port or subnet was taken meanwhile; trying others")
	}
}

// startDead starts the processes that do not run, in waves: what the others need first. Some give up when the API
// server does not answer.
func (c *cluster) startDead() error {
	if first := c.process(nodeInitName); first != nil && !first.alive() {
		c.forgetDelay() // A new node has a good network.
	}
	for _, wave := range []struct {
		names []string
		wait  func() error
	}{
		{[]string{nodeInitName}, c.waitForNodeInit},
		{[]string{"etcd", "kube-apiserver", "containerd"}, c.waitForServer},
		{[]string{"kube-controller-manager", "kube-scheduler", "kwok", "coredns", "kubelet", "kube-proxy", nodeDelayName},
			c.waitForControllers},
	} {
		var started []string
		for _, p := range c.Processes {
			if !slices.Contains(wave.names, p.Name) || p.alive() {
				continue
			}
			started = append(started, p.Name)
			err := c.start(p)
			// Saved before anything else can go wrong: `down` must know the process.
			if err := errors.Join(err, c.save()); err != nil {
				return err
			}
		}
		if len(started) > 0 {
			fmt.Println("starting " + strings.Join(started, ", "))
		}
		if err := wave.wait(); err != nil {
			return err
		}
	}
	if p := firstDead(c.Processes); p != nil {
		return &deadError{p}
	}
	return nil
}

func (c *cluster) start(p *process) error {
	switch {
	case p.Name == nodeInitName:
		return c.startNodeInit(p)
	case p.OnNode:
		return p.start(c.folder, c.process(nodeInitName))
	}
	return p.start(c.folder, nil)
}

func (c *cluster) waitForServer() error {
	api, err := c.client(c.Ports.APIServer)
	if err != nil {
		return err
	}
	if err := c.waitFor("kube-apiserver", c.Processes[:2], func() bool { return api.answers("/readyz") }); err != nil {
		return err
	}
	if err := c.defineLogs(api); err != nil || c.RealNode == nil {
		return err
	}
	return c.serveNode(api)
}

// waitForControllers waits until pods can be made, which takes the default service account, and kwok answers for them.
func (c *cluster) waitForControllers() error {
	api, err := c.client(c.Ports.APIServer)
	if err != nil {
		return err
	}
	manager, err := c.client(c.Ports.ControllerManager)
	if err != nil {
		return err
	}
	scheduler, err := c.client(c.Ports.Scheduler)
	if err != nil {
		return err
	}
	kwok, err := c.client(c.Ports.Kubelet)
	if err != nil {
		return err
	}
	err = c.waitFor("kube-controller-manager, kube-scheduler and kwok", c.Processes, func() bool {
		return api.answers("/api/v1/namespaces/default/serviceaccounts/default") &&
			manager.answers("/healthz") && scheduler.answers("/healthz") && kwok.answers("/healthz")
	})
	if err != nil || c.RealNode == nil {
		return err
	}
	return c.settleNode(api)
}

// waitFor polls `ready` and looks after the processes it depends on.
func (c *cluster) waitFor(what string, need []*process, ready func() bool) error {
	for deadline := time.Now().Add(startDeadline); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if p := firstDead(need); p != nil {
			return &deadError{p}
		}
		if ready() {
			return nil
		}
	}
	return fmt.Errorf("start cluster: %s not ready after %s; logs are in %s/logs", what, startDeadline, c.folder)
}

// takeDown stops the cluster in `folder` and removes the folder. It says whether there was one.
func takeDown(folder string) (bool, error) {
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	c, err := loadCluster(folder)
	if err != nil {
		return true, err
	}
	if c != nil {
		if err := c.stop(); err != nil {
			return true, err
		}
	}
	return true, os.RemoveAll(folder)
}
