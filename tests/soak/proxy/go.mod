// SPDX-License-Identifier: Apache-2.0

module grus/tests/soak/proxy

go 1.26
