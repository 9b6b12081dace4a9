// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// write patches the ConfigMaps in turn with the time it is. A patch that takes long delays none but itself; when too
// many are under way the turn is left out and counted.
func write(arguments []string) error {
	flags, kubeconfig := newFlags("write")
	namespaces := flags.Int("namespaces", 60, "of the ConfigMaps")
	rate := flags.Int("rate", 200, "patches a second")
	duration := flags.Duration("for", 20*time.Second, "how long")
	flags.Parse(arguments)
	client, err := connect(*kubeconfig, jsonContent)
	if err != nil {
		return err
	}
	const mostAtOnce = 90 // Within one connection's streams.
	free := make(chan struct{}, mostAtOnce)
	var written, left atomic.Int64
	var group sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(*rate))
	defer ticker.Stop()
	end := time.Now().Add(*duration)
	for i := 0; time.Now().Before(end); i++ {
		<-ticker.C
		select {
		case free <- struct{}{}:
		default:
			left.Add(1)
			continue
		}
		group.Go(func() {
			defer func() { <-free }()
			patch := fmt.Sprintf(`{"data":{"at":"%d"}}`, time.Now().UnixNano())
			_, err := client.CoreV1().ConfigMaps(namespace(i%*namespaces)).Patch(context.Background(), tick,
				types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err == nil {
				written.Add(1)
			}
		})
	}
	group.Wait()
	fmt.Printf("written %d left %d\n", written.Load(), left.Load())
	return nil
}
