// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// pause is all that runs in the container that holds a pod's namespaces. It waits to be told to end, and reaps what the
// pod's containers leave when they share their processes with it.
func pause() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return nil
		}
		reap()
	}
	return nil
}

// reap takes the exit status of all children that have ended.
func reap() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}
