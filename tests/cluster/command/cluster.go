// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cluster is one control plane: its folder, ports and processes. state.json in the folder is this
// struct; it is written before the first process starts and after each change.
type cluster struct {
	Name      string     `json:"name"`
	Version   string     `json:"version"`
	Ports     portSet    `json:"ports"`
	Processes []*process `json:"processes"`
	RealNode  *realNode  `json:"realNode,omitempty"`
	folder    string
}

// process is the one of that name, nil when the cluster has none.
func (c *cluster) process(name string) *process {
	for _, p := range c.Processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

type portSet struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Kubelet           int `json:"kubelet"` // Of all nodes: kwok's.
}

func (c *cluster) certs() string      { return filepath.Join(c.folder, "certs") }
func (c *cluster) kubeconfig() string { return filepath.Join(c.folder, "kubeconfig") }
func (c *cluster) server() string     { return "https://127.0.0.1:" + strconv.Itoa(c.Ports.APIServer) }

func (c *cluster) client(port int) (*apiClient, error) {
	config, err := adminTLS(c.certs())
	if err != nil {
		return nil, err
	}
	return newAPIClient("https://127.0.0.1:"+strconv.Itoa(port), config), nil
}

// loadCluster returns nil when the folder holds no cluster.
func loadCluster(folder string) (*cluster, error) {
	data, err := os.ReadFile(filepath.Join(folder, "state.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &cluster{folder: folder}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("read %s/state.json: %w", folder, err)
	}
	return c, nil
}

func (c *cluster) save() error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	temp := filepath.Join(c.folder, "state.json.tmp")
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(c.folder, "state.json"))
}

// forget makes the folder hold no cluster any more; logs stay to be read.
func (c *cluster) forget() {
	os.Remove(filepath.Join(c.folder, "state.json"))
}

// features is what a new cluster has beyond the defaults, in the words of the components' own flags.
type features struct {
	gates string // --feature-gates of API server, controller manager and scheduler.
	apis  string // --runtime-config of the API server.
	lease int    // Seconds of the lease by which the scheduler leads; 0: it leads without.
	audit string // The user whose requests the API server logs.

	realNode bool
	gpus     int // Of the real node.
}

func readFeatures(f *flags) (features, error) {
	more := features{gates: f.value("feature-gates", ""), apis: f.value("runtime-config", ""), audit: f.value("audit", ""),
		realNode: f.given("real-node")}
	var err error
	more.lease, err = strconv.Atoi(f.value("scheduler-lease", "0"))
	if err != nil || (more.lease < 3 && f.given("scheduler-lease")) {
		return more, fmt.Errorf("up: --scheduler-lease %s is not a number of seconds of 3 or more", f.value("scheduler-lease", ""))
	}
	if f.given("real-gpus") && !more.realNode {
		return more, errors.New("up: --real-gpus goes with --real-node")
	}
	if more.gpus, err = strconv.Atoi(f.value("real-gpus", "8")); err != nil || more.gpus < 0 {
		return more, fmt.Errorf("up: --real-gpus %s is not a number of GPUs", f.value("real-gpus", ""))
	}
	return more, nil
}

// fit says whether a cluster that is there, if one is, has these features.
func (f features) fit(name string, old *cluster) error {
	if old == nil {
		return nil
	}
	if f.gates != "" || f.apis != "" || f.lease != 0 || f.audit != "" ||
		f.realNode && (old.RealNode == nil || old.RealNode.GPUs != f.gpus) {
		return fmt.Errorf("cluster %s exists already, and its features cannot change; cluster down --name %[1]s first", name)
	}
	return nil
}

func (f features) args() []string {
	if f.gates == "" {
		return nil
	}
	return []string{"--feature-gates=" + f.gates}
}

// leaderElection is that part of the scheduler's configuration.
func (f features) leaderElection() string {
	if f.lease == 0 {
		return "{leaderElect: false}"
	}
	return fmt.Sprintf("{leaderElect: true, leaseDuration: %ds, renewDeadline: %ds, retryPeriod: 1s}", f.lease, f.lease-1)
}

// newCluster fills an empty folder: certificates, kubeconfigs, configuration, free ports, command
// lines. It starts nothing.
func newCluster(name, folder, source string, programs map[string]*binary, more features) (*cluster, error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(folder, "logs"), 0o700); err != nil {
		return nil, err
	}
	c := &cluster{Name: name, Version: programs["kube-apiserver"].version, folder: folder}
	if err := c.Ports.choose(); err != nil {
		return nil, err
	}
	if more.realNode {
		c.RealNode = &realNode{GPUs: more.gpus}
		if err := c.RealNode.chooseSubnet(); err != nil {
			return nil, err
		}
	}
	if err := writeCerts(c.certs(), c.RealNode); err != nil {
		return nil, err
	}
	for user, path := range map[string]string{
		"admin":                   c.kubeconfig(),
		"kube-controller-manager": filepath.Join(folder, "controller-manager.kubeconfig"),
		"kube-scheduler":          filepath.Join(folder, "scheduler.kubeconfig"),
	} {
		if err := writeKubeconfig(path, c.certs(), user, "grus-"+name, c.server()); err != nil {
			return nil, err
		}
	}
	// A scheduler configuration, since its rate limit is no flag any more.
	scheduler := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}
leaderElection: %s
`, filepath.Join(folder, "scheduler.kubeconfig"), more.leaderElection())
	if err := os.WriteFile(filepath.Join(folder, "scheduler.yaml"), []byte(scheduler), 0o600); err != nil {
		return nil, err
	}
	stages, err := copyStages(filepath.Join(source, "kwok"), filepath.Join(folder, "kwok"))
	if err != nil {
		return nil, err
	}
	if c.RealNode != nil {
		heartbeats, err := copyStages(filepath.Join(source, "kwok", "heartbeats"), filepath.Join(folder, "kwok"))
		if err != nil {
			return nil, err
		}
		stages = append(stages, heartbeats...)
	}
	add := func(name string, args ...string) {
		c.Processes = append(c.Processes, &process{
			Name: name, Path: programs[name].path, Args: args, Log: filepath.Join(folder, "logs", name+".log"),
		})
	}
	add("etcd", c.etcdArgs()...)
	apiServer := append(c.apiServerArgs(), more.args()...)
	if more.apis != "" {
		apiServer = append(apiServer, "--runtime-config="+more.apis)
	}
	audit, err := c.prepareAudit(more.audit)
	if err != nil {
		return nil, err
	}
	add("kube-apiserver", append(apiServer, audit...)...)
	add("kube-controller-manager", append(c.controllerManagerArgs(), more.args()...)...)
	add("kube-scheduler", append(c.schedulerArgs(), more.args()...)...)
	add("kwok", c.kwokArgs(stages)...)
	if c.RealNode != nil {
		if err := c.prepareNode(programs); err != nil {
			return nil, err
		}
	}
	return c, c.save()
}

func (c *cluster) etcdArgs() []string {
	client := "http://127.0.0.1:" + strconv.Itoa(c.Ports.Etcd)
	peer := "http://127.0.0.1:" + strconv.Itoa(c.Ports.EtcdPeer)
	return []string{
		"--name=grus", "--data-dir=" + filepath.Join(c.folder, "etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=grus=" + peer,
		"--unsafe-no-fsync", // The data does not outlive the machine.
		"--quota-backend-bytes=8589934592", "--log-level=warn",
	}
}

func (c *cluster) apiServerArgs() []string {
	certs := c.certs()
	args := []string{
		"--etcd-servers=http://127.0.0.1:" + strconv.Itoa(c.Ports.Etcd),
		"--secure-port=" + strconv.Itoa(c.Ports.APIServer),
		"--service-cluster-ip-range=10.0.0.0/16",
		"--tls-cert-file=" + filepath.Join(certs, "serving.crt"),
		"--tls-private-key-file=" + filepath.Join(certs, "serving.key"),
		"--client-ca-file=" + filepath.Join(certs, "ca.crt"),
		"--service-account-key-file=" + filepath.Join(certs, "service-account.crt"),
		"--service-account-signing-key-file=" + filepath.Join(certs, "service-account.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--kubelet-certificate-authority=" + filepath.Join(certs, "ca.crt"),
	}
	// For logs, from kwok. It answers at the nodes' ExternalIP (tests/cluster/kwok/node-ready.yaml).
	const kubelets = "--kubelet-preferred-address-types=ExternalIP"
	if c.RealNode == nil {
		return append(args, kubelets, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
			// Nothing routes Services here, and a loopback address may not stand in an EndpointSlice.
			"--endpoint-reconciler-type=none")
	}
	return append(args, kubelets+",InternalIP", // The real one has only the latter.
		// It must answer at two addresses, loopback and the machine's end of the link to the node, and takes one or all.
		"--bind-address=0.0.0.0", "--advertise-address="+c.RealNode.machineIP(),
		"--kubelet-client-certificate="+filepath.Join(certs, "kubelet-client.crt"),
		"--kubelet-client-key="+filepath.Join(certs, "kubelet-client.key"))
}

func (c *cluster) controllerManagerArgs() []string {
	certs, kubeconfig := c.certs(), filepath.Join(c.folder, "controller-manager.kubeconfig")
	args := append(c.componentArgs(kubeconfig, c.Ports.ControllerManager),
		"--kubeconfig="+kubeconfig,
		"--service-account-private-key-file="+filepath.Join(certs, "service-account.key"),
		"--root-ca-file="+filepath.Join(certs, "ca.crt"),
		"--cluster-signing-cert-file="+filepath.Join(certs, "ca.crt"),
		"--cluster-signing-key-file="+filepath.Join(certs, "ca.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--flex-volume-plugin-dir="+filepath.Join(c.folder, "flexvolume"), // As root it makes one in /usr otherwise.
		// Far above the defaults, so that a bench measures the manager under test and not these.
		"--kube-api-qps=1000", "--kube-api-burst=2000")
	if c.RealNode == nil {
		// kwok's nodes have no heartbeats (tests/cluster/kwok/options.yaml); they are as Ready as their condition says.
		args = append(args, "--node-monitor-grace-period=24h")
	}
	return args
}

func (c *cluster) schedulerArgs() []string {
	return append(c.componentArgs(filepath.Join(c.folder, "scheduler.kubeconfig"), c.Ports.Scheduler),
		"--config="+filepath.Join(c.folder, "scheduler.yaml"))
}

func (c *cluster) componentArgs(kubeconfig string, port int) []string {
	return []string{
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + filepath.Join(c.certs(), "serving.crt"),
		"--tls-private-key-file=" + filepath.Join(c.certs(), "serving.key"),
	}
}

func (c *cluster) kwokArgs(stages []string) []string {
	kubelet := "127.0.0.1:" + strconv.Itoa(c.Ports.Kubelet)
	args := []string{
		"--kubeconfig=" + c.kubeconfig(),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=" + kwokAnnotation + "=" + kwokAnnotationValue,
		"--cidr=10.64.0.0/10", "--node-ip=10.32.0.1", // Outside the Service range.
		"--server-address=" + kubelet, "--node-port=" + strconv.Itoa(c.Ports.Kubelet),
		"--tls-cert-file=" + filepath.Join(c.certs(), "serving.crt"),
		"--tls-private-key-file=" + filepath.Join(c.certs(), "serving.key"),
		"--enable-crds=Logs", // See podlogs.go.
	}
	for _, s := range stages {
		args = append(args, "--config="+s)
	}
	return args
}

// copyStages copies the kwok configuration: a running cluster must not depend on the source tree.
func copyStages(from, to string) ([]string, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no kwok configuration in %s", from)
	}
	var copies []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(to, filepath.Base(file))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, err
		}
		copies = append(copies, path)
	}
	return copies, nil
}

// choose picks free ports. They lie below the range that the kernel hands out to outgoing
// connections, or such a connection could take one before its server binds it.
func (p *portSet) choose() error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, port := range []*int{&p.Etcd, &p.EtcdPeer, &p.APIServer, &p.ControllerManager, &p.Scheduler,
		&p.Kubelet} {
		for tries := 0; ; tries++ {
			candidate := 20000 + rand.IntN(12000)
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(candidate))
			if err == nil {
				held = append(held, l)
				*port = candidate
				break
			}
			if tries == 200 {
				return fmt.Errorf("find a free port: %w", err)
			}
		}
	}
	return nil
}

// portTaken says whether the process ended since somebody else had bound its port.
func (p *process) portTaken() bool {
	return strings.Contains(p.logTail(40), "address already in use")
}
