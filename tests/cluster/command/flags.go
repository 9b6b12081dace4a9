// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

const defaultName = "grus"

// switches are the flags without a value.
var switches = []string{"all", "real-node"}

// flags parses `--flag value` and `--flag=value` anywhere between the arguments, which package flag
// does not: it stops at the first argument.
type flags struct {
	known      []string
	positional int  // How many arguments are allowed.
	passOn     bool // The first argument, or what follows "--", belongs to another program.
	values     map[string][]string
	rest       []string
}

func newFlags(known ...string) *flags {
	return &flags{known: known, values: map[string][]string{}}
}

func (f *flags) parse(args []string) error {
	for len(args) > 0 {
		arg := args[0]
		if f.passOn && (arg == "--" || !strings.HasPrefix(arg, "--name")) {
			if arg == "--" {
				args = args[1:]
			}
			f.rest = args
			return nil
		}
		args = args[1:]
		if !strings.HasPrefix(arg, "--") {
			if f.rest = append(f.rest, arg); len(f.rest) > f.positional {
				return fmt.Errorf("%q is one argument too many; try: cluster help", arg)
			}
			continue
		}
		name, value, hasValue := strings.Cut(arg[2:], "=")
		if !slices.Contains(f.known, name) {
			return fmt.Errorf("unknown flag --%s; try: cluster help", name)
		}
		if !slices.Contains(switches, name) && !hasValue {
			if len(args) == 0 {
				return fmt.Errorf("--%s needs a value", name)
			}
			value, args = args[0], args[1:]
		}
		f.values[name] = append(f.values[name], value)
	}
	return nil
}

func (f *flags) given(name string) bool { return len(f.values[name]) > 0 }

// value is the last one given, so that a caller can override what a script passes.
func (f *flags) value(name, otherwise string) string {
	if all := f.values[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return otherwise
}

func (f *flags) name() string { return f.value("name", defaultName) }
