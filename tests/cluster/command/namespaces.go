// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// nodeNamespaces is what a real node has to itself.
const nodeNamespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS |
	syscall.CLONE_NEWIPC

// setnsCall is the number of setns(2), which package syscall does not have.
var setnsCall = map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]

// enter makes the calling thread, and what is started from it, part of the namespaces of `p`. Of the namespace of
// processes only what is started becomes a part. There is no way back: the thread must end.
func (p *process) enter() error {
	handle, err := os.FindProcess(p.Pid)
	if err != nil {
		return err
	}
	defer handle.Release()
	if !p.alive() { // Checked with the handle in hand, which stays with the process it was taken for.
		return fmt.Errorf("%s is dead", p.Name)
	}
	// A thread that shares its root folder with others may not enter a mount namespace.
	if err := syscall.Unshare(syscall.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	var result syscall.Errno
	if err := handle.WithHandle(func(pidfd uintptr) {
		_, _, result = syscall.RawSyscall(setnsCall, pidfd, nodeNamespaces, 0)
	}); err != nil {
		return err
	}
	if result != 0 {
		return fmt.Errorf("setns: %w", result)
	}
	return nil
}

// inside calls `action` on a thread of its own in the namespaces of `p`.
func (p *process) inside(action func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with the goroutine.
		err := p.enter()
		if err == nil {
			err = action()
		}
		result <- err
	}()
	return <-result
}

// nodeEnv is the environment of all that runs on a real node. With it `ctr` finds the kubelet's images.
func nodeEnv() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"CONTAINERD_ADDRESS=" + containerdSocket, "CONTAINERD_NAMESPACE=k8s.io",
	}
}

// runInside runs a program in the namespaces of `p` and waits for it. What ends us is passed on to it; it gets no signal
// of our death, which Go takes for there already when the parent is in another namespace of processes.
func (p *process) runInside(cmd *exec.Cmd) error {
	cmd.Env = nodeEnv()
	err := p.inside(func() error {
		// Looked for here, since the path of the caller may lack the folders of root.
		path, err := findProgram(cmd.Args[0])
		if err != nil {
			return err
		}
		cmd.Path, cmd.Err = path, nil
		return cmd.Start()
	})
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	return cmd.Wait()
}
