// SPDX-License-Identifier: Apache-2.0

// Leads TCP connections where a file says, as a Service leads them to its endpoint: only new ones go elsewhere when it
// changes, those that stand stay where they are. Without an endpoint they are ended.
//
// Usage: service_road ADDRESS FILE: the address to listen on, and the file whose first line is HOST:PORT.
package main

import (
	"io"
	"log"
	"net"
	"os"
	"strings"
	"time"
)

func lead(client net.Conn, file string) {
	defer client.Close()
	text, _ := os.ReadFile(file)
	endpoint, _, _ := strings.Cut(string(text), "\n")
	server, err := net.DialTimeout("tcp", endpoint, 5*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		io.Copy(to, from)
		ended <- struct{}{}
	}
	go pass(server, client)
	go pass(client, server)
	<-ended
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: service_road ADDRESS FILE")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go lead(client, os.Args[2])
	}
}
