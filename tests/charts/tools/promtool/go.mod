// SPDX-License-Identifier: Apache-2.0

module grus/tests/charts/tools/promtool

go 1.26.0

require github.com/prometheus/prometheus v0.315.1
