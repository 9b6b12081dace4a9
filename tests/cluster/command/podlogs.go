// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const (
	crdPath  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	logsPath = "/apis/kwok.x-k8s.io/v1alpha1/"
)

type object = map[string]any

// kwok reads the log of a pod from the file that a Logs object of the pod's name tells it. This is the CRD of those
// objects, without the schema: kwok checks them itself.
var logsCRD = object{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": object{"name": "logs.kwok.x-k8s.io"},
	"spec": object{
		"group": "kwok.x-k8s.io", "scope": "Namespaced",
		"names": object{"kind": "Logs", "listKind": "LogsList", "plural": "logs", "singular": "logs"},
		"versions": []object{{
			"name": "v1alpha1", "served": true, "storage": true,
			"schema": object{"openAPIV3Schema": object{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	},
}

// create makes an object, unless it is there.
func create(ctx context.Context, api *apiClient, path string, body object) error {
	err := api.do(ctx, http.MethodPost, path, "application/json", body, nil)
	var answer *apiError
	if errors.As(err, &answer) && answer.status == http.StatusConflict {
		return nil
	}
	return err
}

// defineLogs makes the API server serve Logs objects. kwok is started afterwards: it looks for them only now and then
// while they are unknown.
func (c *cluster) defineLogs(api *apiClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	if err := create(ctx, api, crdPath, logsCRD); err != nil {
		return fmt.Errorf("create the CRD of kwok's Logs: %w", err)
	}
	return c.waitFor("the API of kwok's Logs", c.Processes[:2], func() bool { return api.answers(logsPath + "logs") })
}

// podLogFile is where the log of a pod stands.
func (c *cluster) podLogFile(namespace, pod string) string {
	return filepath.Join(c.folder, "pod-logs", namespace, pod+".log")
}

// podLog prints the path of the file that is the log of a pod, and makes it that.
func podLog(s settings, args []string) error {
	f := newFlags("name", "namespace")
	f.positional = 1
	if err := f.parse(args); err != nil {
		return err
	}
	if len(f.rest) != 1 {
		return errors.New("pod-log: say of which pod, for example: cluster pod-log train-0")
	}
	pod, namespace := f.rest[0], f.value("namespace", "default")
	for _, name := range []string{pod, namespace} { // They become part of a path.
		if !regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`).MatchString(name) {
			return fmt.Errorf("pod-log: %q is not a name of a pod or namespace", name)
		}
	}
	c, err := s.existing(f.name())
	if err != nil {
		return err
	}
	file := c.podLogFile(namespace, pod)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	handle, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	handle.Close()
	api, err := c.client(c.Ports.APIServer)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err = create(ctx, api, logsPath+"namespaces/"+namespace+"/logs", object{
		"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs",
		"metadata": object{"name": pod, "namespace": namespace},
		"spec":     object{"logs": []object{{"logsFile": file}}},
	})
	if err != nil {
		return fmt.Errorf("pod-log: %w", err)
	}
	fmt.Println(file)
	return nil
}
