// SPDX-License-Identifier: Apache-2.0

module grus/tests/charts/image_tool

go 1.24
