// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// loadImage gives the node's containerd an image archive.
func (c *cluster) loadImage(archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	// Through a pipe of ours: the archive may lie in a folder that is another one on the node.
	cmd := exec.Command("ctr", "images", "import", "-")
	cmd.Stdin = file
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := c.process(nodeInitName).runInside(cmd); err != nil {
		return fmt.Errorf("load image %s: %w: %s", archive, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// loadPauseImage gives the node the image of the containers that hold pods' namespaces: this program, which can do that.
func (c *cluster) loadPauseImage() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	archive := filepath.Join(c.nodeFolder(), "pause.tar")
	image := imageSpec{name: pauseImage, entrypoint: []string{"/pause", "pause"}, layers: []string{self + "=/pause"}}
	if err := writeImage(archive, image); err != nil {
		return err
	}
	return c.loadImage(archive)
}

// withNode is the cluster of that name, whose real node must run.
func (s settings) withNode(name string) (*cluster, error) {
	c, err := s.existing(name)
	if err != nil {
		return nil, err
	}
	if c.RealNode == nil {
		return nil, fmt.Errorf("cluster %s has no real node; start one with: cluster up --real-node", name)
	}
	if !c.process(nodeInitName).alive() {
		return nil, fmt.Errorf("the real node of cluster %s is dead; start it again with: cluster up --name %[1]s", name)
	}
	return c, nil
}

func loadImage(s settings, args []string) error {
	f := newFlags("name")
	f.positional = 1
	if err := f.parse(args); err != nil {
		return err
	}
	if len(f.rest) != 1 {
		return errors.New("load-image: say which archive, for example: cluster load-image train.tar")
	}
	c, err := s.withNode(f.name())
	if err != nil {
		return err
	}
	return c.loadImage(f.rest[0])
}

// nodeExec runs a command on the real node and ends with its exit status.
func nodeExec(s settings, args []string) error {
	f := newFlags("name")
	f.passOn = true
	if err := f.parse(args); err != nil {
		return err
	}
	if len(f.rest) == 0 {
		return errors.New("node-exec: say what to run, for example: cluster node-exec -- ip address")
	}
	c, err := s.withNode(f.name())
	if err != nil {
		return err
	}
	cmd := exec.Command(f.rest[0], f.rest[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = c.process(nodeInitName).runInside(cmd)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
	return err
}
