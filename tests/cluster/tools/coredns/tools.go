// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the CoreDNS that a real node of the local cluster is built with.
package tools

import (
	_ "github.com/coredns/coredns"
)
