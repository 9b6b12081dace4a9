// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// output gathers lines and prints them; what was said until now can be asked for.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.text.Write(text)
	return os.Stdout.Write(text)
}

func (o *output) matches(pattern *regexp.Regexp) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return pattern.Match(o.text.Bytes())
}

// runProgram runs a program as user 65532 with the root of an image, in the network namespace of this process, where
// name servers and an API server of its own are all there is. It ends well when the program does; with -until, when the
// pattern was printed and the program then ends well on SIGTERM.
func runProgram(arguments []string) error {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	root := flags.String("root", "", "the `folder` that is the program's root")
	program := flags.String("program", "", "the program's `path` in there")
	nested := flags.Bool("nested", false, "become 65532 by a user namespace, as one who is not root has to")
	until := flags.String("until", "", "end the program when this `pattern` is printed")
	server := flags.String("server", "", "write a kubeconfig for this `URL` of an API server")
	trust := flags.String("trust", "own", "whom the kubeconfig trusts: own (the server's CA), other (another CA), system")
	folder := flags.String("kubeconfig-folder", "", "where: it is /config of the program")
	flags.Parse(arguments)
	pattern, err := regexp.Compile(*until)
	if err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("raise lo: %w", err)
	}
	var said output
	if *server != "" {
		config, err := startWorld(&said, *server, *trust)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(*folder, "kubeconfig"), config, 0o644); err != nil {
			return err
		}
	}

	runtime.LockOSThread() // Pdeathsig is for the end of the thread.
	attributes := &syscall.SysProcAttr{Chroot: *root, Pdeathsig: syscall.SIGKILL}
	if *nested {
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}}
	} else {
		attributes.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
	}
	command := exec.Command(*program, flags.Args()...)
	command.Dir = "/"
	command.Env = []string{"PATH=/usr/local/bin", "HOME=/nonexistent"}
	command.SysProcAttr = attributes
	command.Stdout, command.Stderr = io.Writer(&said), io.Writer(&said)
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	deadline := time.After(20 * time.Second)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	isTold := *until == ""
	for {
		select {
		case err := <-ended:
			if !isTold {
				return fmt.Errorf("ended before it printed %s: %v", *until, err)
			}
			return err
		case <-deadline:
			return errors.Join(command.Process.Kill(), errors.New("still runs after 20 s"))
		case <-look.C:
			if !isTold && said.matches(pattern) {
				isTold = true
				if err := command.Process.Signal(syscall.SIGTERM); err != nil {
					return err
				}
			}
		}
	}
}

// raiseLoopback does `ip link set lo up`: a new network namespace has it down.
func raiseLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	if _, _, number := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); number != 0 {
		return number
	}
	return nil
}
