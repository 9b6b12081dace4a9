// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tool is a pinned Go module under tools/ and the programs built from it. The version is read from
// the module's go.mod, so that it stands in one place only.
type tool struct {
	folder   string // Below tools/.
	module   string
	cache    string // Folder in the cache: this plus "-" plus the version.
	programs []program
	ldflags  func(version string) string
}

type program struct {
	name, pkg string
	node      bool // Only a real node needs it.
}

var tools = []tool{
	{
		folder: "etcd", module: "go.etcd.io/etcd/server/v3", cache: "etcd",
		programs: []program{{name: "etcd", pkg: "go.etcd.io/etcd/server/v3"}},
		ldflags:  func(string) string { return "" },
	},
	{
		folder: "kubernetes", module: "k8s.io/kubernetes", cache: "k8s",
		programs: []program{
			{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
			{name: "kube-controller-manager", pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{name: "kube-scheduler", pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
			{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl"},
			{name: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet", node: true},
			{name: "kube-proxy", pkg: "k8s.io/kubernetes/cmd/kube-proxy", node: true},
		},
		ldflags: kubernetesLdflags,
	},
	{
		folder: "kwok", module: "sigs.k8s.io/kwok", cache: "kwok",
		programs: []program{{name: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"}},
		ldflags:  func(version string) string { return " -X sigs.k8s.io/kwok/pkg/consts.Version=" + version },
	},
	{
		folder: "coredns", module: "github.com/coredns/coredns", cache: "coredns",
		programs: []program{{name: "coredns", pkg: "github.com/coredns/coredns", node: true}},
		ldflags:  func(string) string { return "" },
	},
}

// Without these the server reports v0.0.0 and kubectl warns about the difference.
func kubernetesLdflags(version string) string {
	const pkg = " -X k8s.io/component-base/version."
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return pkg + "gitVersion=" + version + pkg + "gitMajor=" + numbers[0] + pkg + "gitMinor=" + numbers[1] +
		pkg + "gitTreeState=clean"
}

// binary is one program to build, all paths known.
type binary struct {
	name, pkg, module, version string
	folder                     string // Of go.mod.
	path                       string // Of the result; the stamp is beside it.
	ldflags                    string
	stamp                      string // Differs when the pinned modules or the flags do.
}

func (b *binary) built() bool {
	have, err := os.ReadFile(b.path + ".stamp")
	if err != nil || string(have) != b.stamp {
		return false
	}
	_, err = os.Stat(b.path)
	return err == nil
}

// binaries lists what a cluster is made of, in build order; `node`: one with a real node.
func binaries(source, cache string, node bool) ([]*binary, error) {
	var all []*binary
	for _, t := range tools {
		folder := filepath.Join(source, "tools", t.folder)
		mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			return nil, err
		}
		sum, err := os.ReadFile(filepath.Join(folder, "go.sum"))
		if err != nil {
			return nil, err
		}
		version := requiredVersion(string(mod), t.module)
		if version == "" {
			return nil, fmt.Errorf("read %s/go.mod: it does not require %s", folder, t.module)
		}
		ldflags := "-s -w" + t.ldflags(version)
		hash := sha256.Sum256(bytes.Join([][]byte{mod, sum, []byte(ldflags)}, []byte{0}))
		for _, p := range t.programs {
			if p.node && !node {
				continue
			}
			all = append(all, &binary{
				name: p.name, pkg: p.pkg, module: t.module, version: version, folder: folder,
				path:    filepath.Join(cache, t.cache+"-"+version, p.name),
				ldflags: ldflags, stamp: hex.EncodeToString(hash[:]) + "\n",
			})
		}
	}
	return all, nil
}

func requiredVersion(mod, module string) string {
	for _, line := range strings.Split(mod, "\n") {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1]
		}
	}
	return ""
}

// ensureBuilt builds what the cache lacks and returns the path of each program by name. Two callers
// at once build once: the second waits and finds everything there. An interrupted build leaves no
// half program, and what Go compiled until then is used by the next one.
func ensureBuilt(source, cache string, node, verbose bool) (map[string]*binary, error) {
	all, err := binaries(source, cache, node)
	if err != nil {
		return nil, err
	}
	if len(missing(all)) > 0 {
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return nil, err
		}
		lock, err := acquireLock(filepath.Join(cache, "build.lock"), func() {
			fmt.Println("waiting for another build to end")
		})
		if err != nil {
			return nil, err
		}
		defer lock.release()
		todo := missing(all)
		if len(todo) > 0 {
			if _, err := exec.LookPath("go"); err != nil {
				return nil, errors.New("go is missing: the cluster's programs are built with it; install Go 1.26 or newer")
			}
			fmt.Printf("building %d programs into %s (once; about 7 minutes for all on 2 cores)\n", len(todo), cache)
		}
		for i, b := range todo {
			fmt.Printf("[%d/%d] %s %s ... ", i+1, len(todo), b.name, b.version)
			begin := time.Now()
			if err := b.build(); err != nil {
				fmt.Println("failed")
				return nil, err
			}
			fmt.Printf("%.0f s\n", time.Since(begin).Seconds())
		}
	} else if verbose {
		fmt.Printf("all %d programs are in %s\n", len(all), cache)
	}
	byName := map[string]*binary{}
	for _, b := range all {
		byName[b.name] = b
	}
	return byName, nil
}

func missing(all []*binary) []*binary {
	var out []*binary
	for _, b := range all {
		if !b.built() {
			out = append(out, b)
		}
	}
	return out
}

func (b *binary) build() error {
	if err := os.MkdirAll(filepath.Dir(b.path), 0o755); err != nil {
		return err
	}
	// What an interrupted build left; nobody else writes here, we hold the lock.
	if old, err := filepath.Glob(b.path + ".tmp*"); err == nil {
		for _, path := range old {
			os.Remove(path)
		}
	}
	temp := b.path + ".tmp" + strconv.Itoa(os.Getpid())
	defer os.Remove(temp)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", b.ldflags, "-o", temp, b.pkg)
	cmd.Dir = b.folder
	// The caller's Go settings for its own code must not reach this build.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off",
		"GO111MODULE=on", "GOOS=", "GOARCH=")
	// Go must not build on, without the lock, when we are killed. The signal is tied to the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		log := b.path + ".log"
		_ = os.WriteFile(log, output.Bytes(), 0o644)
		return b.explain(output.String(), log, err)
	}
	os.Remove(b.path + ".log")
	if err := os.Rename(temp, b.path); err != nil {
		return err
	}
	return os.WriteFile(b.path+".stamp", []byte(b.stamp), 0o644)
}

// explain turns what Go said into one line that names what is missing and what to do about it.
func (b *binary) explain(output, log string, cause error) error {
	last := ""
	for _, line := range strings.Split(output, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "go: downloading") {
			last = line
		}
	}
	for _, sign := range []string{"dial tcp", "no such host", "proxyconnect", "i/o timeout", "TLS handshake", "connection re",
		"module lookup disabled", "unexpected EOF", "404 Not Found", "410 Gone", "403 Forbidden", "502 ", "503 "} {
		if strings.Contains(last, sign) {
			return fmt.Errorf("build %s: the Go modules of %s %s cannot be downloaded; check the network or set GOPROXY (%s)",
				b.name, b.module, b.version, last)
		}
	}
	if strings.Contains(output, "requires go >=") {
		return fmt.Errorf("build %s: a newer Go is needed: %s", b.name, last)
	}
	if last == "" {
		last = cause.Error()
	}
	return fmt.Errorf("build %s: %s (whole output: %s)", b.name, last, log)
}
