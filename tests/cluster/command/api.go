// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// apiClient sends JSON requests to one server as cluster administrator.
type apiClient struct {
	server string
	http   *http.Client
}

// apiError is an answer of the server that is not a success.
type apiError struct {
	status  int
	message string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

func newAPIClient(server string, config *tls.Config) *apiClient {
	return &apiClient{server, &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{ // No proxy: the server is on this machine.
			TLSClientConfig: config, ForceAttemptHTTP2: true,
		},
	}}
}

// do sends `body` (nil: none) and decodes the answer into `out` (nil: not wanted).
func (c *apiClient) do(ctx context.Context, method, path, contentType string, body, out any) error {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, payload)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(data, &status) != nil || status.Message == "" {
			status.Message = string(data[:min(len(data), 200)])
		}
		return &apiError{resp.StatusCode, status.Message}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// answers says whether a GET of `path` succeeds within two seconds.
func (c *apiClient) answers(path string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return c.do(ctx, http.MethodGet, path, "", nil, nil) == nil
}
