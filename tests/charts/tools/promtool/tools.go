// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins the promtool that checks the chart's alerts and dashboards.
package tools

import _ "github.com/prometheus/prometheus/cmd/promtool"
