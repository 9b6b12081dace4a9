// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cgroupMounts are the roots of all hierarchies: one of cgroup v2, or one for each controller of v1.
func cgroupMounts() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, line := range strings.Split(string(data), "\n") {
		if fields := strings.Fields(line); len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			roots = append(roots, fields[1])
		}
	}
	if len(roots) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted")
	}
	return roots, nil
}

// makeCgroups makes the cgroup `name` in all hierarchies: the kubelet wants its root to be there.
func makeCgroups(name string) error {
	roots, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// removeCgroups removes the cgroup `name` and all below it. Its processes must have been killed; the kernel takes a
// moment to forget them.
func removeCgroups(name string) error {
	roots, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, root := range roots {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			err := removeCgroup(filepath.Join(root, name))
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup: %w", err)
			}
		}
	}
	return nil
}

func removeCgroup(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(path); err != nil && err != syscall.ENOENT { // Its files go with it.
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}
