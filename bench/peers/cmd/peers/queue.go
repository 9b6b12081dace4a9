// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// cpuTime is that of the whole process: the garbage collector and the goroutine that waits for delayed keys included.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// queuePeer does on client-go's work queue what bench/work_queue_bench.cc does on ours, under the same names.
func queuePeer([]string) error {
	queue := workqueue.NewTypedDelayingQueue[types.NamespacedName]()
	defer queue.ShutDown()
	takeAll := func(count int) {
		for range count {
			key, _ := queue.Get()
			queue.Done(key)
		}
	}
	report := func(name string, batch int, one func()) {
		var cpu time.Duration
		result := testing.Benchmark(func(b *testing.B) {
			before := cpuTime()
			for range b.N {
				one()
			}
			cpu = cpuTime() - before
		})
		say("%s %.0f", name, float64(batch)*float64(result.N)/cpu.Seconds())
	}
	for _, count := range []int{1000, 100_000} {
		keys := make([]types.NamespacedName, count)
		for i := range keys {
			keys[i] = types.NamespacedName{Namespace: namespace(i % 60), Name: fmt.Sprintf("bert-pretrain-%05d-workers-0", i)}
		}
		next := 0
		report(fmt.Sprintf("OneByOne/%d", count), 1, func() {
			queue.Add(keys[next])
			takeAll(1)
			next = (next + 1) % count
		})
		report(fmt.Sprintf("FillThenDrain/%d", count), count, func() {
			for _, key := range keys {
				queue.Add(key)
			}
			takeAll(count)
		})
		report(fmt.Sprintf("AddAfter/%d", count), count, func() {
			for _, key := range keys {
				queue.AddAfter(key, time.Millisecond)
			}
			takeAll(count)
		})
		report(fmt.Sprintf("SameKeyTenTimes/%d", count), 10*count, func() {
			for _, key := range keys {
				for range 10 {
					queue.Add(key)
				}
			}
			takeAll(count)
		})
	}
	return nil
}
