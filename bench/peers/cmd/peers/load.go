// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// load makes the namespaces, a ConfigMap in each, and the pods.
func load(arguments []string) error {
	flags, kubeconfig := newFlags("load")
	namespaces := flags.Int("namespaces", 60, "how many")
	pods := flags.Int("pods", 0, "how many, spread over the namespaces")
	parallel := flags.Int("parallel", 48, "requests at once")
	flags.Parse(arguments)
	client, err := connect(*kubeconfig, protoContent)
	if err != nil {
		return err
	}
	err = inParallel(*namespaces, *parallel, func(i int) error { return createNamespace(client, namespace(i)) })
	if err != nil {
		return err
	}
	if *pods == 0 {
		return nil
	}
	start := time.Now()
	store, err := newPodStore(*kubeconfig, client, *namespaces)
	if err != nil {
		return err
	}
	err = inParallel(*pods-1, *parallel, func(i int) error { return store.put(i+1, *namespaces) })
	if err != nil {
		return err
	}
	if err := waitForPods(client, *pods); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	json, err := onePod(*kubeconfig, namespace(0))
	fmt.Printf("%d pods created in %.0f s, %.0f/s; one is %d bytes of JSON\n", *pods, took, float64(*pods)/took, json)
	return err
}

// The service account is made here and not waited for: pods need it, and the controllers are stopped.
func createNamespace(client *kubernetes.Clientset, name string) error {
	ctx := context.Background()
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.CoreV1().ServiceAccounts(name).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.CoreV1().ConfigMaps(name).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: tick}, Data: map[string]string{"at": "0"}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// waitForPods waits until the API server, which hears of pods from etcd, serves all of them.
func waitForPods(client *kubernetes.Clientset, count int) error {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		list, err := client.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if list.RemainingItemCount != nil && int(*list.RemainingItemCount) == count-1 || len(list.Items) == count {
			return nil
		}
	}
	return fmt.Errorf("the API server does not serve %d pods", count)
}

// onePod is how many bytes of JSON a pod has as the server sends it.
func onePod(kubeconfig, namespace string) (int, error) {
	client, err := connect(kubeconfig, jsonContent)
	if err != nil {
		return 0, err
	}
	body, err := client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Param("limit", "1").
		DoRaw(context.Background())
	if err != nil {
		return 0, err
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil || len(list.Items) == 0 {
		return 0, fmt.Errorf("no pods in %s: %v", namespace, err)
	}
	return len(list.Items[0]), nil
}

// inParallel calls `do` for 0 to count-1; after the first error it starts no more.
func inParallel(count, parallel int, do func(i int) error) error {
	var next atomic.Int64
	var first error
	var once sync.Once
	var group sync.WaitGroup
	var failed atomic.Bool
	for range parallel {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && !failed.Load(); i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					once.Do(func() { first = err })
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	return first
}
