// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// podStore writes pods where the API server keeps them, in etcd. The first is made through the API; the others are
// that one, as it was stored, with their own names and status. Through the API 50,000 pods with their status take
// five minutes and more, most of it for managedFields; this way about one, and what clients see is the same.
type podStore struct {
	etcd     string // URL
	client   http.Client
	encoder  runtime.Encoder
	template *corev1.Pod
}

func newPodStore(kubeconfig string, client *kubernetes.Clientset, namespaces int) (*podStore, error) {
	// tests/cluster keeps it beside the kubeconfig.
	state, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "state.json"))
	if err != nil {
		return nil, err
	}
	var cluster struct{ Ports struct{ Etcd int } }
	if err := json.Unmarshal(state, &cluster); err != nil {
		return nil, err
	}
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	s := &podStore{etcd: fmt.Sprintf("http://127.0.0.1:%d", cluster.Ports.Etcd)}
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	s.encoder = scheme.Codecs.EncoderForVersion(serializer, corev1.SchemeGroupVersion)
	if err := createPod(client, 0, namespaces); err != nil {
		return nil, err
	}
	var found struct{ Kvs []struct{ Value []byte } }
	if err := s.call("range", map[string]any{"key": pathOf(newPod(0, namespaces))}, &found); err != nil {
		return nil, err
	}
	if len(found.Kvs) != 1 {
		return nil, fmt.Errorf("the first pod is not in etcd")
	}
	s.template = &corev1.Pod{}
	_, _, err = serializer.Decode(found.Kvs[0].Value, nil, s.template)
	return s, err
}

// The field managers are those a pod has in a cluster: it makes the length of managedFields what it is there.
func createPod(client *kubernetes.Clientset, i, namespaces int) error {
	pod := newPod(i, namespaces)
	pods := client.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(context.Background(), pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		return err
	}
	created.Status = newStatus(i)
	_, err = pods.UpdateStatus(context.Background(), created, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

func (s *podStore) put(i, namespaces int) error {
	own, pod := newPod(i, namespaces), s.template.DeepCopy()
	pod.Name, pod.Namespace, pod.UID = own.Name, own.Namespace, types.UID(uuid.NewUUID())
	pod.Labels, pod.OwnerReferences = own.Labels, own.OwnerReferences
	pod.Spec.NodeName = own.Spec.NodeName
	pod.Status = newStatus(i)
	// managedFields name the owner and the address.
	replacer := strings.NewReplacer(string(s.template.OwnerReferences[0].UID), string(own.OwnerReferences[0].UID),
		s.template.Status.PodIP, pod.Status.PodIP)
	for _, entry := range pod.ManagedFields {
		entry.FieldsV1.Raw = []byte(replacer.Replace(string(entry.FieldsV1.Raw)))
	}
	value, err := runtime.Encode(s.encoder, pod)
	if err != nil {
		return err
	}
	return s.call("put", map[string]any{"key": pathOf(pod), "value": value}, nil)
}

func pathOf(pod *corev1.Pod) []byte {
	return []byte("/registry/pods/" + pod.Namespace + "/" + pod.Name)
}

// call speaks etcd's JSON over HTTP, where bytes are base64, as they are in Go's.
func (s *podStore) call(what string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := s.client.Post(s.etcd+"/v3/kv/"+what, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
