// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the kwok binary that plays the kubelets of the local cluster.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
