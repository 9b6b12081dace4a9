// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile is an exclusive lock between processes; the kernel drops it when its holder dies.
type lockFile struct {
	file *os.File
}

// acquireLock waits for the lock; `onWait` is called once if somebody else holds it.
func acquireLock(path string, onWait func()) (*lockFile, error) {
	waited := false
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			if !waited && onWait != nil {
				waited = true
				onWait()
			}
			if err := flock(f, syscall.LOCK_EX); err != nil {
				f.Close()
				return nil, fmt.Errorf("lock %s: %w", path, err)
			}
		}
		// The holder before us may have removed the file: then our lock guards nothing.
		ours, err1 := f.Stat()
		named, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(ours, named) {
			return &lockFile{f}, nil
		}
		f.Close()
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

func (l *lockFile) release() {
	l.file.Close()
}

// releaseAndRemove is for locks whose subject is gone for good.
func (l *lockFile) releaseAndRemove() {
	os.Remove(l.file.Name())
	l.file.Close()
}
