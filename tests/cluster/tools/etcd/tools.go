// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the etcd binary that the local cluster is built from.
package tools

import _ "go.etcd.io/etcd/server/v3"
