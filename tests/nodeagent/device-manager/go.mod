// SPDX-License-Identifier: Apache-2.0
// Go takes from here only where the module begins: device_manager_test.sh builds with -modfile=../../cluster/tools/kubernetes/go.mod,
// so that this is the device manager of the kubelet that the test clusters run, and its packages are compiled once.

module grus/tests/nodeagent/device-manager

go 1.26.0
