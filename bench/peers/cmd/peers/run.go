// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

type options struct {
	kubeconfig, programs          string
	pods, rounds, seconds         int
	watches, requests, changeRate int
	port                          int // The API server's.
}

// side is one of what is compared: the command lines of its measured processes.
type side struct {
	name           string
	cache, latency []string
}

func run(arguments []string) error {
	var o options
	flags, kubeconfig := newFlags("run")
	flags.StringVar(&o.programs, "programs", "build/release/bin", "folder of the C++ side")
	flags.IntVar(&o.pods, "pods", 50_000, "in the cache")
	flags.IntVar(&o.rounds, "rounds", 3, "of each measurement; the sides take turns")
	flags.IntVar(&o.seconds, "seconds", 20, "of each latency measurement")
	flags.IntVar(&o.watches, "watches", 60, "open during the latency measurement")
	flags.IntVar(&o.requests, "requests", 200, "in flight during the latency measurement")
	flags.IntVar(&o.changeRate, "rate", 200, "changes a second during the latency measurement")
	only := flags.String("only", "latency,queue,cache", "what is measured")
	flags.Parse(arguments)
	o.kubeconfig = *kubeconfig
	config, err := loadConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	if o.port, err = strconv.Atoi(server.Port()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	latency := []string{self, "latency", "--kubeconfig", o.kubeconfig,
		"--watches", fmt.Sprint(o.watches), "--requests", fmt.Sprint(o.requests)}
	sides := []side{
		{ours, []string{o.program("cache_peer"), o.kubeconfig},
			[]string{o.program("latency_peer"), o.kubeconfig, fmt.Sprint(o.watches), fmt.Sprint(o.requests)}},
		{theirs, []string{self, "cache", "--kubeconfig", o.kubeconfig}, latency},
		{stripped, []string{self, "cache", "--kubeconfig", o.kubeconfig, "--strip"}, nil},
	}

	results := table{}
	for _, what := range strings.Split(*only, ",") {
		measure := map[string]func(*options, []side, string, table) error{
			"latency": measureLatency, "queue": measureQueue, "cache": measureCache,
		}[what]
		if measure == nil {
			return errors.New("no measurement is called " + what)
		}
		if err := measure(&o, sides, self, results); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	results.print(&o)
	return nil
}

func (o *options) program(name string) string { return filepath.Join(o.programs, name) }

// load runs the loader as a process of its own and passes on what it says.
func (o *options) load(self string, pods int) error {
	cmd := exec.Command(self, "load", "--kubeconfig", o.kubeconfig,
		"--namespaces", fmt.Sprint(o.watches), "--pods", fmt.Sprint(pods))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func measureCache(o *options, sides []side, self string, results table) error {
	say("loading %d pods", o.pods)
	if err := o.load(self, o.pods); err != nil {
		return err
	}
	for round := range o.rounds {
		for _, s := range sides {
			if err := measureCacheOf(o, s, results); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, s.name, err)
			}
		}
	}
	return nil
}

func measureCacheOf(o *options, s side, results table) error {
	c, err := startChild(s.cache)
	if err != nil {
		return err
	}
	defer c.stop()
	if _, err := c.next("ready"); err != nil {
		return err
	}
	before := c.memory("VmRSS")
	start := time.Now()
	c.goOn()
	told, err := c.next("synced")
	if err != nil {
		return err
	}
	wall, cpu := time.Since(start).Seconds(), c.cpu()
	if told[0] != fmt.Sprint(o.pods) {
		return fmt.Errorf("its handler was told of %s pods, not of %d", told[0], o.pods)
	}
	synced := c.memory("VmRSS")
	c.goOn()
	if told, err = c.next("settled"); err != nil {
		return err
	}
	time.Sleep(time.Second)
	settled := c.memory("VmRSS")
	results.add(cachePeak, s.name, c.memory("VmHWM")/mib)
	results.add(cacheSynced, s.name, synced/mib)
	results.add(cacheSettled, s.name, settled/mib)
	results.add(cachePerPod, s.name, (settled-before)/float64(o.pods))
	results.add(cacheCPU, s.name, cpu)
	results.add(cacheWall, s.name, wall)
	say("cache    %-28s peak %.1f MiB, synced %.1f MiB, settled %.1f MiB, CPU %.2f s, synced after %.2f s",
		s.name, c.memory("VmHWM")/mib, synced/mib, settled/mib, cpu, wall)
	return nil
}

func measureLatency(o *options, sides []side, self string, results table) error {
	if err := o.load(self, 0); err != nil {
		return err
	}
	for round := range o.rounds {
		for _, s := range sides {
			if s.latency == nil {
				continue
			}
			if err := measureLatencyOf(o, s, self, results); err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, s.name, err)
			}
		}
	}
	return nil
}

func measureLatencyOf(o *options, s side, self string, results table) error {
	c, err := startChild(s.latency)
	if err != nil {
		return err
	}
	defer c.stop()
	if _, err := c.next("ready"); err != nil {
		return err
	}
	const warmUp, coolDown = 3 * time.Second, time.Second
	measured := time.Duration(o.seconds) * time.Second
	writer := exec.Command(self, "write", "--kubeconfig", o.kubeconfig, "--namespaces", fmt.Sprint(o.watches),
		"--rate", fmt.Sprint(o.changeRate), "--for", (warmUp + measured + coolDown).String())
	writer.Stderr = os.Stderr
	if err := writer.Start(); err != nil {
		return err
	}
	defer writer.Wait()
	time.Sleep(warmUp)
	cpu, start := c.cpu(), time.Now()
	c.goOn()
	connections := 0
	for time.Since(start) < measured {
		connections = max(connections, c.connections(o.port))
		time.Sleep(time.Second)
	}
	c.goOn()
	cpu = c.cpu() - cpu
	told, err := c.next("gets")
	if err != nil {
		return err
	}
	gets, _ := strconv.ParseFloat(told[0], 64)
	if told[2] != "0" {
		return fmt.Errorf("%s of its requests failed", told[2])
	}
	var samples []float64
	for c.lines.Scan() {
		value, ok := strings.CutPrefix(c.lines.Text(), "sample ")
		if !ok {
			break
		}
		nanoseconds, _ := strconv.ParseFloat(value, 64)
		samples = append(samples, nanoseconds/1e6)
	}
	sort.Float64s(samples)
	median, p99 := percentile(samples, 0.5), percentile(samples, 0.99)
	took := float64(o.seconds)
	results.add(latencyMedian, s.name, median)
	results.add(latencyP99, s.name, p99)
	results.add(latencyChanges, s.name, float64(len(samples))/took)
	results.add(latencyGets, s.name, gets/took)
	results.add(latencyCPU, s.name, cpu/gets*1e6)
	results.add(latencyConnections, s.name, float64(connections))
	say("latency  %-28s median %.2f ms, p99 %.2f ms of %d changes, %.0f GETs/s, %d connections, CPU %.2f s",
		s.name, median, p99, len(samples), gets/took, connections, cpu)
	return nil
}
