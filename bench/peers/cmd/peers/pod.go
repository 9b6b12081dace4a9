// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const workersPerJob = 16

// newPod is the i-th pod: worker of a training job, about 5 kB of JSON once the server and newStatus added theirs.
func newPod(i, namespaces int) *corev1.Pod {
	job := i / workersPerJob
	name := fmt.Sprintf("bert-pretrain-%05d-workers", job)
	yes, no := true, false
	variable := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "wikipedia-en", ReadOnly: true}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s-%d", name, i%workersPerJob),
			Namespace: namespace(job % namespaces),
			Labels: map[string]string{
				"app.kubernetes.io/component":  "worker",
				"ai.centauruscloud.io/job":     fmt.Sprintf("bert-pretrain-%05d", job),
				"apps.kubernetes.io/pod-index": fmt.Sprint(i % workersPerJob),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: uid(job),
				Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:                     fmt.Sprintf("gpu-node-%04d", i/8),
			AutomountServiceAccountToken: &no,
			Containers: []corev1.Container{{
				Name:  "worker",
				Image: "registry.example.com/ml-platform/bert-pretrain:2026.11.3",
				Env:   []corev1.EnvVar{variable("NCCL_DEBUG", "INFO"), variable("DATA_PATH", "/data/wikipedia-en")},
				Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9400}},
				Resources: corev1.ResourceRequirements{
					Requests: resources("8", "64Gi", "1"), Limits: resources("16", "64Gi", "1"),
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}},
			},
		},
	}
}

// newStatus is what the kubelet says of the i-th pod once it runs.
func newStatus(i int) corev1.PodStatus {
	started := metav1.NewTime(time.Date(2026, 11, 21, 9, i/60%60, i%60, 0, time.UTC))
	condition := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: started}
	}
	ip := fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255)
	digest := sha256.Sum256([]byte("container " + fmt.Sprint(i)))
	yes := true
	return corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled"),
		},
		HostIP: fmt.Sprintf("10.32.%d.%d", i>>11&255, i>>3&255), PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		StartTime: &started,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "worker", Ready: true, Started: &yes,
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			Image:       "registry.example.com/ml-platform/bert-pretrain:2026.11.3",
			ImageID:     fmt.Sprintf("registry.example.com/ml-platform/bert-pretrain@sha256:%x", sha256.Sum256([]byte("image"))),
			ContainerID: fmt.Sprintf("containerd://%x", digest),
		}},
		QOSClass: corev1.PodQOSBurstable,
	}
}

func resources(cpu, memory, gpus string) corev1.ResourceList {
	return corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(gpus),
	}
}

func uid(job int) types.UID {
	sum := sha256.Sum256([]byte("job " + fmt.Sprint(job)))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
