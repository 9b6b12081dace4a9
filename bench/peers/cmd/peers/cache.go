// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// cachePeer holds all pods as an operator's author has them by default: a shared informer with an index by namespace
// (which controller-runtime's cache is too) and one handler.
func cachePeer(arguments []string) error {
	flags, kubeconfig := newFlags("cache")
	strip := flags.Bool("strip", false, "drop managedFields before an object is stored")
	flags.Parse(arguments)
	client, err := connect(*kubeconfig, jsonContent)
	if err != nil {
		return err
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	if *strip {
		err := informer.SetTransform(func(object any) (any, error) {
			if pod, ok := object.(*corev1.Pod); ok {
				pod.ManagedFields = nil
			}
			return object, nil
		})
		if err != nil {
			return err
		}
	}
	var seen atomic.Int64
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen.Add(1) }})
	if err != nil {
		return err
	}

	say("ready")
	await()
	stop := make(chan struct{})
	go informer.Run(stop)
	cache.WaitForCacheSync(stop, handler.HasSynced)
	say("synced %d", seen.Load())
	await()
	debug.FreeOSMemory() // runtime.GC(), and gives back all that is free.
	say("settled %d", len(informer.GetStore().ListKeys()))
	await()
	return nil
}
