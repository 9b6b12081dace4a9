// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one program of a cluster: how to start it, and which running process it is.
//
// A pid alone may have been given to someone else since; together with the start time, which the
// kernel counts in ticks since boot, it is the process we started or none.
type process struct {
	Name       string   `json:"name"`
	Path       string   `json:"path"`
	Args       []string `json:"args"`
	Log        string   `json:"log"`
	OnNode     bool     `json:"onNode,omitempty"` // It runs in the namespaces of the real node.
	Pid        int      `json:"pid,omitempty"`
	StartTicks uint64   `json:"startTicks,omitempty"`
}

// start runs the program, where `node` is not nil in the namespaces of that process.
func (p *process) start(folder string, node *process) error {
	cmd := exec.Command(p.Path, p.Args...)
	if node == nil {
		return p.launch(cmd, folder, cmd.Start)
	}
	cmd.Env = nodeEnv()
	return p.launch(cmd, folder, func() error { return node.inside(cmd.Start) })
}

// launch lets `start` run the command in a session of its own, with nothing of the caller's open, so that it outlives
// the caller and a pipe behind the caller sees its end.
func (p *process) launch(cmd *exec.Cmd, folder string, start func() error) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.Pid = cmd.Process.Pid
	stat, ok := readStat(p.Pid)
	if !ok {
		return fmt.Errorf("start %s: it is gone at once", p.Name)
	}
	p.StartTicks = stat.startTicks
	go cmd.Wait() // Takes the exit status, so that a process that dies during `up` leaves no zombie.
	return nil
}

func (p *process) alive() bool {
	if p.Pid == 0 {
		return false
	}
	stat, ok := readStat(p.Pid)
	if !ok || stat.startTicks != p.StartTicks || stat.state == 'Z' || stat.state == 'X' {
		return false
	}
	return !stat.exiting || hasOpenFiles(p.Pid)
}

// hasOpenFiles is false for a process that ends and has given back its memory and its files. As a rule that is soon
// a zombie; but the first process of a pid namespace stays so until the last zombie of the namespace was collected, by
// a parent that may be the machine's first process and slow.
func hasOpenFiles(pid int) bool {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "fd"))
	return err == nil && len(entries) > 0
}

// signal does nothing when the process is gone.
func (p *process) signal(s os.Signal) {
	// The handle is taken before the check: it stays with the process it was taken for.
	handle, err := os.FindProcess(p.Pid)
	if err != nil {
		return
	}
	defer handle.Release()
	if p.alive() {
		_ = handle.Signal(s)
	}
}

// stopAll asks all processes to end and kills those still there after two seconds: kube-apiserver
// would wait for open watches to end.
func stopAll(processes []*process) error {
	for _, s := range []struct {
		signal os.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, 2 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		for _, p := range processes {
			p.signal(s.signal)
		}
		for deadline := time.Now().Add(s.wait); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if firstAlive(processes) == nil {
				return nil
			}
		}
	}
	p := firstAlive(processes)
	return fmt.Errorf("stop %s: pid %d does not end", p.Name, p.Pid)
}

func firstAlive(processes []*process) *process {
	for _, p := range processes {
		if p.alive() {
			return p
		}
	}
	return nil
}

func firstDead(processes []*process) *process {
	for _, p := range processes {
		if !p.alive() {
			return p
		}
	}
	return nil
}

type procStat struct {
	state      byte
	exiting    bool
	startTicks uint64
}

// readStat reads /proc/PID/stat. The program's name stands there in brackets and may hold anything,
// so fields are counted from the last bracket: state is the first after it, the flags the 7th, the start time the 20th.
func readStat(pid int) (procStat, bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return procStat{}, false
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return procStat{}, false
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return procStat{}, false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return procStat{}, false
	}
	const pfExiting = 0x4 // PF_EXITING of the kernel's include/linux/sched.h.
	return procStat{fields[0][0], flags&pfExiting != 0, ticks}, true
}

// started is when the process started, by the clock on the wall.
func (p *process) started() (time.Time, error) {
	data, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, err
	}
	var uptime float64
	if _, err := fmt.Sscan(string(data), &uptime); err != nil {
		return time.Time{}, fmt.Errorf("read /proc/uptime: %w", err)
	}
	const ticksPerSecond = 100 // Of what the kernel tells, whatever it counts itself.
	age := uptime - float64(p.StartTicks)/ticksPerSecond
	return time.Now().Add(-time.Duration(age * float64(time.Second))), nil
}

// memoryMiB is the resident memory of the process, 0 when it is gone.
func (p *process) memoryMiB() int {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.Pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize() / (1 << 20)
}

// logTail is the end of the program's log, for an error message.
func (p *process) logTail(lines int) string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	for i, line := range all {
		if len(line) > 400 {
			line = line[:400] + "..."
		}
		all[i] = "  | " + line
	}
	return strings.Join(all, "\n")
}

// keepDescriptorsPrivate keeps what the caller left open (a make jobserver, a lock) from the
// programs we start: Go closes only what it opened itself.
func keepDescriptorsPrivate() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
