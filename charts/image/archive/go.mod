// SPDX-License-Identifier: Apache-2.0

module grus/charts/image/archive

go 1.24
