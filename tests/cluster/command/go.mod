// SPDX-License-Identifier: Apache-2.0

module grus/tests/cluster/command

go 1.26
