// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// nodeInit is the first process of a real node, in namespaces of its own: `cluster node-init FOLDER ADDRESS/BITS GATEWAY`.
// It makes the inside of the node ready for containerd and the kubelet, says so with the file FOLDER/ready, and then
// reaps what nobody waits for. When it dies, the kernel kills all that runs on the node.
func nodeInit(args []string) error {
	if len(args) != 3 || os.Getpid() != 1 {
		return errors.New("node-init: only `cluster up --real-node` starts it")
	}
	folder, address, gateway := args[0], args[1], args[2]
	// Nothing may be done before the cluster's state names this process. When its starter dies before that, so do we.
	if n, _ := os.NewFile(3, "go").Read(make([]byte, 1)); n != 1 {
		return errors.New("node-init: `cluster up` ended too early")
	}
	children := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	for _, step := range []func() error{
		func() error { return mountNode(folder) },
		func() error { return tryOverlay(folder) },
		func() error { return shadowTunables(folder) },
		func() error { return connectNode(address, gateway) },
		makeFaultChain,
		func() error { return syscall.Sethostname([]byte(realNodeName)) },
		func() error { return os.WriteFile(filepath.Join(folder, "ready"), nil, 0o600) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("node-init: %w", err)
		}
	}
	fmt.Println("the node is ready for containerd and the kubelet")
	signal.Notify(children, syscall.SIGCHLD)
	for {
		reap()
		<-children
	}
}

// hiddenFolders are where containerd, the kubelet and CNI plugins keep what they keep, not all of which can be told to
// them. On the node these folders are others than on the machine.
var hiddenFolders = []string{"/run", "/var/lib", "/var/log"}

func mountNode(folder string) error {
	// First away from the machine; then shared within the node, which volumes of pods rely on.
	if err := mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := mount("none", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, path := range hiddenFolders[1:] {
		own := filepath.Join(folder, filepath.Base(path))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		if err := mount(own, path, "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755")
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

// tryOverlay checks that containers' file systems can be stacked here, which containerd would say only in its log.
func tryOverlay(folder string) error {
	trial := filepath.Join(folder, "overlay")
	layers := map[string]string{}
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		layers[name] = filepath.Join(trial, name)
		if err := os.MkdirAll(layers[name], 0o755); err != nil {
			return err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", layers["lower"], layers["upper"], layers["work"])
	if err := mount("overlay", layers["merged"], "overlay", 0, options); err != nil {
		return fmt.Errorf("%w; set GRUS_STATE to a folder on ext4, xfs or tmpfs", err)
	}
	return errors.Join(syscall.Unmount(layers["merged"], 0), os.RemoveAll(trial))
}

// shadowTunables keeps the kubelet from changing the machine's kernel: it writes these settings, which no namespace has
// to itself, where they differ from what it wants. Here it finds files that say what it wants.
func shadowTunables(folder string) error {
	for name, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		file := filepath.Join(folder, "tunables", strings.ReplaceAll(name, "/", "."))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, "/proc/sys/"+name, "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// connectNode sets up the node's end of the link to the machine, which is there already.
func connectNode(address, gateway string) error {
	err := ip("link set lo up", "address add "+address+" dev eth0", "link set eth0 up", "route add default via "+gateway)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"net/ipv4/ip_forward": "1", // Between the pods and to the machine.
		// Pods that talk to each other through a Service pass kube-proxy's rules also when both are on this bridge.
		"net/bridge/bridge-nf-call-iptables": "1",
	} {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0)
		if err != nil {
			return err
		}
	}
	return nil
}

// ip runs commands of ip(8) and stops at the first that fails.
func ip(commands ...string) error {
	path, err := findProgram("ip")
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip: %s (%w)", strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "; "), err)
	}
	return nil
}
