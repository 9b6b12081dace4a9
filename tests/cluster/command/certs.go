// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// authority signs the certificates of one cluster and lives as long as it.
// All keys are ECDSA P-256: a whole set takes milliseconds to make.
type authority struct {
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// identity is who a client certificate says its holder is: user name and groups, as RBAC sees them.
type identity struct {
	file, user string
	groups     []string
}

var clientIdentities = []identity{
	{"admin", "kubernetes-admin", []string{"system:masters"}},
	{"kube-controller-manager", "system:kube-controller-manager", nil},
	{"kube-scheduler", "system:kube-scheduler", nil},
}

// nodeIdentities are those of a real node's programs, and who the API server is to the kubelet.
var nodeIdentities = []identity{
	{"kubelet", "system:node:" + realNodeName, []string{"system:nodes"}},
	{"kube-proxy", "system:kube-proxy", nil},
	{"coredns", corednsUser, nil},
	{"kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}},
}

// writeCerts fills `folder` with ca, serving, service-account and client certificates and keys.
func writeCerts(folder string, node *realNode) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	a := &authority{folder: folder}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	root := certTemplate("grus-test-ca", nil)
	root.IsCA, root.BasicConstraintsValid = true, true
	root.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	a.cert = root
	if err := a.write("ca", root, a.key); err != nil {
		return err
	}

	serving := certTemplate("kube-apiserver", nil)
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
	identities := clientIdentities
	if node != nil {
		serving.IPAddresses = append(serving.IPAddresses, net.ParseIP(node.machineIP()))
		identities = slices.Concat(clientIdentities, nodeIdentities)
		kubelet := certTemplate("system:node:"+realNodeName, nil)
		kubelet.ExtKeyUsage, kubelet.IPAddresses = serving.ExtKeyUsage, []net.IP{net.ParseIP(node.nodeIP())}
		if err := a.issue("kubelet-serving", kubelet); err != nil {
			return err
		}
	}
	if err := a.issue("serving", serving); err != nil {
		return err
	}
	for _, id := range identities {
		client := certTemplate(id.user, id.groups)
		client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if err := a.issue(id.file, client); err != nil {
			return err
		}
	}
	// Of this certificate only the public key counts: it checks service account tokens.
	return a.issue("service-account", certTemplate("service-accounts", nil))
}

func certTemplate(user string, groups []string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand never fails on Linux.
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func (a *authority) issue(file string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return a.write(file, template, key)
}

func (a *authority) write(file string, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("sign certificate %s: %w", file, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	base := filepath.Join(a.folder, file)
	if err := os.WriteFile(base+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644); err != nil {
		return err
	}
	return os.WriteFile(base+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
}

// writeKubeconfig writes a self-contained kubeconfig (no paths in it) for the client certificate `user`.
func writeKubeconfig(path, certs, user, cluster, server string) error {
	encode := func(file string) (string, error) {
		data, err := os.ReadFile(filepath.Join(certs, file))
		return base64.StdEncoding.EncodeToString(data), err
	}
	ca, err := encode("ca.crt")
	if err != nil {
		return err
	}
	cert, err := encode(user + ".crt")
	if err != nil {
		return err
	}
	key, err := encode(user + ".key")
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[2]s
clusters:
- name: %[1]s
  cluster:
    server: %[3]s
    certificate-authority-data: %[4]s
users:
- name: %[2]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
`, cluster, user, server, ca, cert, key)
	return os.WriteFile(path, []byte(text), 0o600)
}

// adminTLS is the client side of a connection as cluster administrator.
func adminTLS(certs string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(certs, "admin.crt"), filepath.Join(certs, "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read %s: no certificate in it", filepath.Join(certs, "ca.crt"))
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
