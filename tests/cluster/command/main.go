// SPDX-License-Identifier: Apache-2.0

// Command cluster runs real Kubernetes control planes on one machine, for tests, demos and benches.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	keepDescriptorsPrivate()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// settings is where things are.
type settings struct {
	source string // tests/cluster of the tree.
	cache  string
	state  string // One folder a cluster below it.
}

func readSettings() (settings, error) {
	s := settings{source: os.Getenv("GRUS_CLUSTER_SOURCE"), cache: os.Getenv("GRUS_CACHE"), state: os.Getenv("GRUS_STATE")}
	if s.source == "" {
		return s, errors.New("GRUS_CLUSTER_SOURCE is not set; run tests/cluster/cluster, which sets it")
	}
	if s.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return s, fmt.Errorf("find a cache folder: %w; set GRUS_CACHE", err)
		}
		s.cache = filepath.Join(base, "grus")
	}
	if s.state == "" {
		s.state = filepath.Join("/tmp", "grus-cluster-"+strconv.Itoa(os.Getuid()))
	}
	for _, path := range []*string{&s.source, &s.cache, &s.state} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return s, err
		}
		*path = absolute
	}
	return s, nil
}

func run(args []string) error {
	if len(args) == 0 {
		fmt.Print(help)
		return errors.New("no command given")
	}
	switch args[0] { // These run on the real node.
	case nodeInitName:
		return nodeInit(args[1:])
	case nodeDelayName:
		return nodeDelay(args[1:])
	case "pause":
		return pause()
	}
	s, err := readSettings()
	if err != nil {
		return err
	}
	command, args := args[0], args[1:]
	switch command {
	case "help", "-h", "--help":
		fmt.Print(help)
		return nil
	case "build":
		f := newFlags("real-node")
		if err := f.parse(args); err != nil {
			return err
		}
		_, err := ensureBuilt(s.source, s.cache, f.given("real-node"), true)
		return err
	case "up":
		return up(s, args)
	case "down":
		return down(s, args)
	case "status":
		return status(s, args)
	case "nodes":
		return nodes(s, args)
	case "load-image":
		return loadImage(s, args)
	case "make-image":
		return makeImage(args)
	case "node-exec":
		return nodeExec(s, args)
	case "node-net":
		return nodeNet(s, args)
	case "pod-log":
		return podLog(s, args)
	case "audit":
		return printAudit(s, args)
	case "kubeconfig":
		return kubeconfig(s, args)
	case "kubectl":
		return kubectl(s, args)
	}
	return fmt.Errorf("unknown command %q; try: cluster help", command)
}

// folder checks the cluster's name and returns its folder. Names become part of paths.
func (s settings) folder(name string) (string, error) {
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`).MatchString(name) {
		return "", fmt.Errorf("%q is not a name for a cluster: lower-case letters, digits and '-', at most 40", name)
	}
	return filepath.Join(s.state, name), nil
}

// existing is the cluster of that name, which must be there.
func (s settings) existing(name string) (*cluster, error) {
	folder, err := s.folder(name)
	if err != nil {
		return nil, err
	}
	c, err := loadCluster(folder)
	if err == nil && c == nil {
		err = fmt.Errorf("there is no cluster %q; start it with: cluster up --name %s", name, name)
	}
	return c, err
}

// lock keeps two commands from starting or stopping the same cluster at once.
func (s settings) lock(name string) (*lockFile, error) {
	for {
		lock, err := s.tryLock(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // A `down` beside us has just removed the empty state folder.
		}
		return lock, err
	}
}

func (s settings) tryLock(name string) (*lockFile, error) {
	if err := os.MkdirAll(s.state, 0o700); err != nil {
		return nil, err
	}
	// The default lies in /tmp, where anybody may have made it first.
	info, err := os.Stat(s.state)
	if err != nil {
		return nil, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
		return nil, fmt.Errorf("%s belongs to somebody else; set GRUS_STATE to another folder", s.state)
	}
	return acquireLock(filepath.Join(s.state, "."+name+".lock"), func() {
		fmt.Printf("waiting for another command on cluster %s\n", name)
	})
}

func up(s settings, args []string) error {
	f := newFlags("name", "feature-gates", "runtime-config", "scheduler-lease", "audit", "real-node", "real-gpus")
	if err := f.parse(args); err != nil {
		return err
	}
	more, err := readFeatures(f)
	if err != nil {
		return err
	}
	name := f.name()
	folder, err := s.folder(name)
	if err != nil {
		return err
	}
	if more.realNode {
		if err := checkMachine(s); err != nil {
			return err
		}
	}
	programs, err := ensureBuilt(s.source, s.cache, more.realNode, false)
	if err != nil {
		return err
	}
	lock, err := s.lock(name)
	if err != nil {
		return err
	}
	defer lock.release()

	begin := time.Now()
	old, err := loadCluster(folder)
	if err != nil {
		return err
	}
	if err := more.fit(name, old); err != nil {
		return err
	}
	ran := old != nil && firstDead(old.Processes) == nil
	c, err := bringUp(name, folder, s.source, programs, more)
	if err != nil {
		return err
	}
	if ran {
		fmt.Printf("cluster %s is already up: Kubernetes %s at %s\n", name, c.Version, c.server())
	} else {
		fmt.Printf("cluster %s is up after %.1f s: Kubernetes %s at %s\n", name, time.Since(begin).Seconds(), c.Version, c.server())
	}
	fmt.Printf("export KUBECONFIG=%s   # stop it with: cluster down --name %s\n", c.kubeconfig(), name)
	return nil
}

func down(s settings, args []string) error {
	f := newFlags("name", "all")
	if err := f.parse(args); err != nil {
		return err
	}
	names := []string{f.name()}
	if f.given("all") {
		if f.given("name") {
			return errors.New("down: --all and --name exclude each other")
		}
		names = s.names()
	}
	if f.given("all") && len(names) == 0 {
		fmt.Println("no cluster is there")
		return nil
	}
	for _, name := range names {
		folder, err := s.folder(name)
		if err != nil {
			return err
		}
		lock, err := s.lock(name)
		if err != nil {
			return err
		}
		found, err := takeDown(folder)
		if err != nil {
			lock.release()
			return err
		}
		lock.releaseAndRemove()
		if found {
			fmt.Printf("cluster %s is down\n", name)
		} else {
			fmt.Printf("there is no cluster %s\n", name)
		}
	}
	os.Remove(s.state) // Only when it is empty.
	return nil
}

// names are the clusters that have a folder.
func (s settings) names() []string {
	entries, err := os.ReadDir(s.state)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func status(s settings, args []string) error {
	f := newFlags("name")
	if err := f.parse(args); err != nil {
		return err
	}
	names := s.names()
	if f.given("name") {
		names = []string{f.name()}
	}
	if len(names) == 0 {
		return errors.New("no cluster is there; start one with: cluster up")
	}
	var bad []string
	for _, name := range names {
		c, err := s.existing(name)
		if err != nil {
			return err
		}
		bad = append(bad, c.report()...)
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "; "))
	}
	return nil
}

// report prints the processes of the cluster and returns what is wrong with it.
func (c *cluster) report() []string {
	var bad []string
	memory := 0
	fmt.Printf("cluster %s: Kubernetes %s at %s\n", c.Name, c.Version, c.server())
	for _, p := range c.Processes {
		if p.alive() {
			memory += p.memoryMiB()
			fmt.Printf("  %-24s running  pid %-8d %5d MiB  %s\n", p.Name, p.Pid, p.memoryMiB(), p.Log)
			continue
		}
		fmt.Printf("  %-24s DEAD     pid %-8d            %s\n", p.Name, p.Pid, p.Log)
		bad = append(bad, fmt.Sprintf("cluster %s: %s is dead", c.Name, p.Name))
	}
	if len(bad) == 0 {
		if api, err := c.client(c.Ports.APIServer); err != nil || !api.answers("/readyz") {
			bad = append(bad, fmt.Sprintf("cluster %s: kube-apiserver is not ready", c.Name))
		}
	}
	fmt.Printf("  %d MiB in all; kubeconfig %s\n", memory, c.kubeconfig())
	return bad
}

func nodes(s settings, args []string) error {
	f := newFlags("name", "gpus", "prefix", "label")
	f.positional = 1
	if err := f.parse(args); err != nil {
		return err
	}
	if len(f.rest) != 1 {
		return errors.New("nodes: say how many, for example: cluster nodes 4 --gpus 8")
	}
	plan := nodePlan{prefix: f.value("prefix", "node"), labels: map[string]string{}}
	var err error
	if plan.count, err = strconv.Atoi(f.rest[0]); err != nil || plan.count < 0 {
		return fmt.Errorf("nodes: %q is not a number of nodes", f.rest[0])
	}
	if plan.gpus, err = strconv.Atoi(f.value("gpus", "8")); err != nil || plan.gpus < 0 {
		return fmt.Errorf("nodes: --gpus %s is not a number of GPUs", f.value("gpus", ""))
	}
	for _, label := range f.values["label"] {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return fmt.Errorf("nodes: --label %s is not KEY=VALUE", label)
		}
		plan.labels[key] = value
	}
	c, err := s.existing(f.name())
	if err != nil {
		return err
	}
	begin := time.Now()
	added, changed, removed, err := plan.settle(c, time.Minute+time.Duration(plan.count)*100*time.Millisecond)
	if err != nil {
		return err
	}
	labels := ""
	for _, k := range sortedKeys(plan.labels) {
		labels += fmt.Sprintf(", %s=%s", k, plan.labels[k])
	}
	fmt.Printf("%d nodes %s-* with %d GPUs each%s are Ready after %.1f s (%d added, %d changed, %d removed)\n",
		plan.count, plan.prefix, plan.gpus, labels, time.Since(begin).Seconds(), added, changed, removed)
	return nil
}

func kubeconfig(s settings, args []string) error {
	f := newFlags("name")
	if err := f.parse(args); err != nil {
		return err
	}
	c, err := s.existing(f.name())
	if err != nil {
		return err
	}
	fmt.Println(c.kubeconfig())
	return nil
}

func kubectl(s settings, args []string) error {
	f := newFlags("name")
	f.passOn = true
	if err := f.parse(args); err != nil {
		return err
	}
	c, err := s.existing(f.name())
	if err != nil {
		return err
	}
	programs, err := ensureBuilt(s.source, s.cache, false, false)
	if err != nil {
		return err
	}
	// Of a variable that is there twice, Go programs take the first.
	if err := os.Setenv("KUBECONFIG", c.kubeconfig()); err != nil {
		return err
	}
	path := programs["kubectl"].path
	return syscall.Exec(path, append([]string{path}, f.rest...), os.Environ())
}
