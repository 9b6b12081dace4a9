// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const nodeDelayName = "node-delay"

// faultChain is the chain of netfilter that all packets between node and machine pass, in both directions; what pods of
// the node send each other does not. Nothing is in it while the network is fine.
const faultChain = "GRUS-NET"

// makeFaultChain runs on the node.
func makeFaultChain() error {
	return iptablesRestore("-A PREROUTING -i eth0 -j "+faultChain, "-A POSTROUTING -o eth0 -j "+faultChain)
}

// iptablesRestore empties the chain and adds these rules to the table.
func iptablesRestore(rules ...string) error {
	path, err := findProgram("iptables-restore")
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "--noflush", "--wait")
	cmd.Stdin = strings.NewReader("*mangle\n:" + faultChain + " -\n" + strings.Join(rules, "\n") + "\nCOMMIT\n")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("iptables-restore: %s (%w)", strings.TrimSpace(string(output)), err)
	}
	return nil
}

// faults is how bad the network between the node and the machine is.
type faults struct {
	milliseconds int     // That each packet takes longer.
	percent      float64 // Of packets that are lost.
}

func readFaults(words []string) (faults, error) {
	usage := errors.New("node-net: say cut, heal, delay MS, loss PERCENT, or the latter two")
	var f faults
	switch {
	case len(words) == 1 && words[0] == "cut":
		return faults{percent: 100}, nil
	case len(words) == 1 && words[0] == "heal":
		return f, nil
	case len(words) == 0 || len(words)%2 != 0:
		return f, usage
	}
	for pair := range slices.Chunk(words, 2) {
		var err error
		switch pair[0] {
		case "delay":
			if f.milliseconds, err = strconv.Atoi(pair[1]); err != nil || f.milliseconds < 1 || f.milliseconds > 60000 {
				return f, fmt.Errorf("node-net: delay %s is not a number of milliseconds from 1 to 60000", pair[1])
			}
		case "loss":
			if f.percent, err = strconv.ParseFloat(pair[1], 64); err != nil || !(f.percent > 0 && f.percent <= 100) {
				return f, fmt.Errorf("node-net: loss %s is not a percentage above 0", pair[1])
			}
		default:
			return f, usage
		}
	}
	return f, nil
}

func (f faults) rules() []string {
	var rules []string
	switch {
	case f.percent == 100:
		return []string{"-A " + faultChain + " -j DROP"}
	case f.percent > 0:
		const rule = "-A %s -m statistic --mode random --probability %.6f -j DROP"
		rules = append(rules, fmt.Sprintf(rule, faultChain, f.percent/100))
	}
	if f.milliseconds > 0 {
		// Bypass: where nobody reads the queue, the packet passes.
		rules = append(rules, "-A "+faultChain+" -j NFQUEUE --queue-num 0 --queue-bypass")
	}
	return rules
}

// nodeNet makes the network between the node and the machine bad, or good again.
func nodeNet(s settings, args []string) error {
	f := newFlags("name")
	f.positional = 4
	if err := f.parse(args); err != nil {
		return err
	}
	wanted, err := readFaults(f.rest)
	if err != nil {
		return err
	}
	lock, err := s.lock(f.name())
	if err != nil {
		return err
	}
	defer lock.release()
	c, err := s.withNode(f.name())
	if err != nil {
		return err
	}
	first := c.process(nodeInitName)
	if err := first.inside(func() error { return iptablesRestore() }); err != nil {
		return err
	}
	if err := c.stopDelay(); err != nil || wanted == (faults{}) {
		return err
	}
	if wanted.milliseconds > 0 {
		if err := c.startDelay(wanted.milliseconds); err != nil {
			return err
		}
	}
	return first.inside(func() error { return iptablesRestore(wanted.rules()...) })
}

func (c *cluster) stopDelay() error {
	delay := c.process(nodeDelayName)
	if delay == nil {
		return nil
	}
	if err := stopAll([]*process{delay}); err != nil {
		return err
	}
	c.forgetDelay()
	return c.save()
}

func (c *cluster) forgetDelay() {
	c.Processes = slices.DeleteFunc(c.Processes, func(p *process) bool { return p.Name == nodeDelayName })
}

func (c *cluster) startDelay(milliseconds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{
		Name: nodeDelayName, Path: self, Args: []string{nodeDelayName, strconv.Itoa(milliseconds)},
		Log: filepath.Join(c.folder, "logs", nodeDelayName+".log"), OnNode: true,
	}
	c.Processes = append(c.Processes, p)
	if err := errors.Join(c.start(p), c.save()); err != nil {
		return err
	}
	return c.waitFor(nodeDelayName, []*process{p}, func() bool {
		queues, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netfilter/nfnetlink_queue", p.Pid))
		return err == nil && len(queues) > 0
	})
}
