// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
)

// The measured processes, of either language, say in lines how far they are and wait for a line to go on.

func say(format string, values ...any) { fmt.Printf(format+"\n", values...) }

var input = bufio.NewScanner(os.Stdin)

// await ends the process when whoever started it is gone.
func await() {
	if !input.Scan() {
		os.Exit(1)
	}
}
