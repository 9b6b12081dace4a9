// SPDX-License-Identifier: Apache-2.0

// Measures clientlib beside client-go on one cluster; see README.md. `run` is what scripts/bench-peers calls: it
// starts the other commands, and the programs of the C++ side, as processes of their own.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var commands = map[string]func(arguments []string) error{
	"run":     run,
	"load":    load,
	"write":   write,
	"cache":   cachePeer,
	"latency": latencyPeer,
	"queue":   queuePeer,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peers run|load|write|cache|latency|queue [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "peers %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// flags of a command, --kubeconfig among them.
func newFlags(command string) (*flag.FlagSet, *string) {
	set := flag.NewFlagSet("peers "+command, flag.ExitOnError)
	return set, set.String("kubeconfig", os.Getenv("KUBECONFIG"), "of the cluster")
}

const (
	jsonContent  = "application/json"
	protoContent = "application/vnd.kubernetes.protobuf"
)

// connect has no limit of its own on the request rate, as an operator built on controller-runtime has none.
func connect(kubeconfig, contentType string) (*kubernetes.Clientset, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = contentType
	return kubernetes.NewForConfig(config)
}

func loadConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// namespace is where the ConfigMap of the i-th watch and a share of the pods are.
func namespace(i int) string { return fmt.Sprintf("team-%02d", i) }

// The ConfigMap that is written to, in each of the namespaces.
const tick = "tick"
