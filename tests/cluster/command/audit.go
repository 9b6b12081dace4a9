// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// auditFile is the API server's log of what one user asked for.
func (c *cluster) auditFile() string { return filepath.Join(c.folder, "audit.log") }

// prepareAudit writes the policy and returns the flags of the API server.
func (c *cluster) prepareAudit(user string) ([]string, error) {
	if user == "" {
		return nil, nil
	}
	policy := filepath.Join(c.folder, "audit-policy.yaml")
	text := fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, users: [%q]}
  - {level: None}
`, user)
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditFile(), "--audit-log-maxsize=0"}, nil
}

type auditEvent struct {
	Verb      string
	ObjectRef *struct {
		Resource, Subresource, APIGroup string
	}
	Annotations map[string]string
}

// printAudit prints each right that the user used, "VERB GROUP/RESOURCE[/SUBRESOURCE]" with the group "core" for that
// without a name, and those that it lacked with "forbidden " before.
func printAudit(s settings, args []string) error {
	f := newFlags("name")
	if err := f.parse(args); err != nil {
		return err
	}
	c, err := s.existing(f.name())
	if err != nil {
		return err
	}
	file, err := os.Open(c.auditFile())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("audit: cluster %s has no audit log; start it with up --audit USER", f.name())
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	used := map[string]bool{}
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // The line that is being written.
		}
		if event.ObjectRef == nil {
			continue // Discovery and the like.
		}
		group, resource := event.ObjectRef.APIGroup, event.ObjectRef.Resource
		if group == "" {
			group = "core"
		}
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		right := event.Verb + " " + group + "/" + resource
		if event.Annotations["authorization.k8s.io/decision"] == "forbid" {
			right = "forbidden " + right
		}
		used[right] = true
	}
	if err := lines.Err(); err != nil {
		return err
	}
	rights := make([]string, 0, len(used))
	for right := range used {
		rights = append(rights, right)
	}
	sort.Strings(rights)
	fmt.Println(strings.Join(rights, "\n"))
	return nil
}
