// SPDX-License-Identifier: Apache-2.0

// Command image_tool is what image_test.sh cannot do in bash: play the world of a container, and read an SBOM.
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "sbom":
		err = listPackages(os.Args[2])
	case len(os.Args) > 2 && os.Args[1] == "run":
		err = runProgram(os.Args[2:])
	default:
		err = fmt.Errorf("usage: image_tool sbom FILE | run FLAGS -- ARGUMENTS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image_tool:", err)
		os.Exit(1)
	}
}
