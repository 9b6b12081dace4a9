// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// child is a measured process of either language, and what the kernel says of it.
type child struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines *bufio.Scanner
}

func startChild(command []string) (*child, error) {
	c := &child{cmd: exec.Command(command[0], command[1:]...)}
	c.cmd.Stderr = os.Stderr
	input, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.input, c.lines = input, bufio.NewScanner(output)
	return c, c.cmd.Start()
}

// next is the next line it says, which must begin with `word`: the words after it.
func (c *child) next(word string) ([]string, error) {
	if !c.lines.Scan() {
		return nil, fmt.Errorf("%s ended without a word", c.cmd.Path)
	}
	words := strings.Fields(c.lines.Text())
	if len(words) == 0 || words[0] != word {
		return nil, fmt.Errorf("%s said %q, expected %q", c.cmd.Path, c.lines.Text(), word)
	}
	return words[1:], nil
}

func (c *child) goOn() { io.WriteString(c.input, "go on\n") }

// stop ends the process, whatever it does.
func (c *child) stop() {
	c.input.Close()
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func (c *child) proc(file string) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.cmd.Process.Pid, file))
	return string(data)
}

// memory is a line of /proc/PID/status in bytes: VmRSS, VmHWM (the peak).
func (c *child) memory(name string) float64 {
	_, after, _ := strings.Cut(c.proc("status"), name+":")
	kilobytes, _ := strconv.ParseFloat(strings.Fields(after + " 0")[0], 64)
	return kilobytes * 1024
}

// cpu is its user and system time in seconds, over all threads. The kernel gives hundredths.
func (c *child) cpu() float64 {
	stat := c.proc("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// connections counts its established TCP connections to a port.
func (c *child) connections(port int) int {
	folder := fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)
	entries, _ := os.ReadDir(folder)
	mine := map[string]bool{}
	for _, entry := range entries {
		target, _ := os.Readlink(folder + "/" + entry.Name())
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			mine[strings.TrimSuffix(inode, "]")] = true
		}
	}
	const established = "01"
	wanted := fmt.Sprintf(":%04X", port)
	count := 0
	for _, line := range strings.Split(c.proc("net/tcp")+c.proc("net/tcp6"), "\n") {
		f := strings.Fields(line) // sl local remote state queues timer retransmits uid timeout inode
		if len(f) > 9 && strings.HasSuffix(f[2], wanted) && f[3] == established && mine[f[9]] {
			count++
		}
	}
	return count
}
