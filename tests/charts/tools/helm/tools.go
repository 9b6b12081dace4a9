// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the helm that renders the chart in its test.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
