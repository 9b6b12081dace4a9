// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// latencyPeer watches the ConfigMaps of each namespace through an informer of its own while many requests are in
// flight, and notes how old each change is when its handler runs.
func latencyPeer(arguments []string) error {
	flags, kubeconfig := newFlags("latency")
	watches := flags.Int("watches", 60, "informers")
	requests := flags.Int("requests", 200, "GETs in flight")
	flags.Parse(arguments)
	client, err := connect(*kubeconfig, jsonContent)
	if err != nil {
		return err
	}
	var recording atomic.Bool
	var mutex sync.Mutex
	var samples []int64
	note := func(_, object any) {
		now := time.Now().UnixNano()
		if !recording.Load() {
			return
		}
		at, _ := strconv.ParseInt(object.(*corev1.ConfigMap).Data["at"], 10, 64)
		mutex.Lock()
		samples = append(samples, now-at)
		mutex.Unlock()
	}
	stop := make(chan struct{})
	for i := range *watches {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace(i)))
		informer := factory.Core().V1().ConfigMaps().Informer()
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: note})
		if err != nil {
			return err
		}
		go informer.Run(stop)
		cache.WaitForCacheSync(stop, handler.HasSynced)
	}
	var gets, failed atomic.Int64
	for i := range *requests {
		go func() {
			configMaps := client.CoreV1().ConfigMaps(namespace(i % *watches))
			for {
				if _, err := configMaps.Get(context.Background(), tick, metav1.GetOptions{}); err != nil {
					failed.Add(1)
				}
				gets.Add(1)
			}
		}()
	}

	say("ready")
	await()
	before := gets.Load()
	recording.Store(true)
	await()
	recording.Store(false)
	say("gets %d failed %d", gets.Load()-before, failed.Load())
	mutex.Lock()
	defer mutex.Unlock()
	out := bufio.NewWriter(os.Stdout)
	for _, sample := range samples {
		fmt.Fprintln(out, "sample", sample)
	}
	fmt.Fprintln(out, "end")
	return out.Flush()
}
