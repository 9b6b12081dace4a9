// SPDX-License-Identifier: Apache-2.0
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"
)

const (
	nameInDNS   = "dns.grus.test"   // Known to the name server here only.
	nameInHosts = "hosts.grus.test" // In /etc/hosts of the image only.
)

// startWorld starts a name server and an API server that is always busy, both on the loopback address, and returns a
// kubeconfig for `server`. What they are asked is printed to `out`.
func startWorld(out io.Writer, server, trust string) ([]byte, error) {
	names, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		return nil, err
	}
	go answerNames(names, out)

	authority, key, err := makeCertificate(nil, nil)
	if err != nil {
		return nil, err
	}
	leaf, leafKey, err := makeCertificate(authority, key)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:6443", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: leafKey}}})
	if err != nil {
		return nil, err
	}
	api := http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(
		func(answer http.ResponseWriter, request *http.Request) {
			fmt.Fprintf(out, "api: %s %s of %s\n", request.Method, request.URL.Path, request.Host)
			answer.WriteHeader(http.StatusServiceUnavailable)
		})}
	go api.Serve(listener)

	authorityText := ""
	switch trust {
	case "other":
		if authority, _, err = makeCertificate(nil, nil); err != nil {
			return nil, err
		}
		fallthrough
	case "own":
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw})
		authorityText = ", certificate-authority-data: " + base64.StdEncoding.EncodeToString(text)
	case "system":
	default:
		return nil, fmt.Errorf("-trust %q: expected own, other or system", trust)
	}
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "%s"%s}}]
users: [{name: it, user: {token: "of-nobody"}}]
`, server, authorityText), nil
}

// makeCertificate makes a CA, or with one given a server's certificate.
func makeCertificate(authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: authority == nil,
	}
	if authority == nil {
		template.KeyUsage = x509.KeyUsageCertSign
		template.Subject.CommonName = fmt.Sprint("authority ", template.SerialNumber)
		authority, authorityKey = template, key
	} else {
		template.DNSNames = []string{nameInDNS, nameInHosts}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return certificate, key, err
}

// answerNames serves DNS as far as needed: one question, about nameInDNS, whose IPv4 address is 127.0.0.1; any other
// name does not exist.
func answerNames(socket net.PacketConn, out io.Writer) {
	buffer := make([]byte, 512)
	for {
		size, from, err := socket.ReadFrom(buffer)
		if err != nil {
			return
		}
		const head = 12
		name, end := "", head
		for end < size && buffer[end] != 0 && end+int(buffer[end]) < size {
			label := int(buffer[end])
			name += string(buffer[end+1:end+1+label]) + "."
			end += 1 + label
		}
		end += 5 // The end of the name, type and class.
		if end > size {
			continue
		}
		isAddress := buffer[end-4] == 0 && buffer[end-3] == 1
		fmt.Fprintf(out, "dns: %s\n", name)
		// RFC 1035, 4.1.1: an authoritative answer to one question; 3: no such name.
		answer := append([]byte{buffer[0], buffer[1], 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0}, buffer[head:end]...)
		if name != nameInDNS+"." {
			answer[3] = 3
		} else if isAddress {
			answer[7] = 1
			answer = append(answer, 0xc0, head, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1)
		}
		socket.WriteTo(answer, from)
	}
}
