// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
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
		_ = stopAll(c.Processes)
		c.forget()
		var dead *deadError
		if !errors.As(err, &dead) || !dead.process.portTaken() || attempt == startAttempts {
			return nil, err
		}
		fmt.Printf("a port of %s was taken meanwhile; trying others\n", dead.process.Name)
	}
}

// startDead starts the processes that do not run, in two waves: the API server with its store, and
// then its clients, some of which give up when it does not answer.
func (c *cluster) startDead() error {
	waves := [][]*process{c.Processes[:2], c.Processes[2:]}
	waits := []func() error{c.waitForServer, c.waitForControllers}
	for i, wave := range waves {
		var names []string
		for _, p := range wave {
			if p.alive() {
				continue
			}
			names = append(names, p.Name)
			err := p.start(c.folder)
			// Saved before anything else can go wrong: `down` must know the process.
			if err := errors.Join(err, c.save()); err != nil {
				return err
			}
		}
		if len(names) > 0 {
			fmt.Println("starting " + strings.Join(names, ", "))
		}
		if err := waits[i](); err != nil {
			return err
		}
	}
	if p := firstDead(c.Processes); p != nil {
		return &deadError{p}
	}
	return nil
}

func (c *cluster) waitForServer() error {
	api, err := c.client(c.Ports.APIServer)
	if err != nil {
		return err
	}
	if err := c.waitFor("kube-apiserver", c.Processes[:2], func() bool { return api.answers("/readyz") }); err != nil {
		return err
	}
	return c.defineLogs(api)
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
	return c.waitFor("kube-controller-manager, kube-scheduler and kwok", c.Processes, func() bool {
		return api.answers("/api/v1/namespaces/default/serviceaccounts/default") &&
			manager.answers("/healthz") && scheduler.answers("/healthz") && kwok.answers("/healthz")
	})
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
		if err := stopAll(c.Processes); err != nil {
			return true, err
		}
	}
	return true, os.RemoveAll(folder)
}
