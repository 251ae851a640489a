package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// Contender is a scheduler that is measured, or a way to configure it.
type Contender struct {
	Name string
	// Profile is the schedulerName of its pods.
	Profile string
	Config  []byte
	// Gates are feature gates ("Name=true").
	Gates []string
}

// InstalledGates are the feature gates with which the manifests run the scheduler.
var InstalledGates = []string{"NominatedNodeNameForExpectation=false"}

// Stock is kube-scheduler with its default profile.
func Stock() Contender {
	return Contender{"stock", v1.DefaultSchedulerName,
		[]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"), nil}
}

// Installed is a profile of berth-scheduler as the manifests install it.
func Installed(name, profile string) Contender {
	return Contender{name, profile, rig.Must(manifests.Files.ReadFile("base/scheduler-config.yaml")), InstalledGates}
}

// Process is a scheduler process under measurement.
type Process struct {
	ctx     context.Context
	process *exec.Cmd
	log     string
	exited  chan struct{}
	url     string
	http    *http.Client
}

// StartScheduler starts a scheduler. The connection and the leader election in its configuration are replaced. It serves
// its metrics on a port that it keeps until it ends.
func (b *Bed) StartScheduler(c Contender) *Process {
	berth := rig.Must(sandbox.FindBinary())
	dir := rig.Must(os.MkdirTemp(b.dir, "scheduler"))
	file := filepath.Join(dir, "config.yaml")
	b.writeConfig(file, c.Config)
	// What the scheduler says of itself is read without credentials, under the certificate of the control plane.
	keys := sandbox.Layout(b.box.Dir()).Keys()
	transport := rig.Must(rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: keys.Cert(sandbox.KeyCA)}}))
	log := rig.Must(os.Create(filepath.Join(dir, "log")))
	defer func() { _ = log.Close() }()
	at := rig.Must(sandbox.ReservePort(0))
	args := []string{"--config=" + file, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(at.Number),
		"--tls-cert-file=" + keys.Cert(sandbox.KeyServer), "--tls-private-key-file=" + keys.Key(sandbox.KeyServer),
		"--authorization-always-allow-paths=/metrics"}
	if len(c.Gates) > 0 {
		args = append(args, "--feature-gates="+strings.Join(c.Gates, ","))
	}
	process := exec.Command(filepath.Join(filepath.Dir(berth), "berth-scheduler"), args...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		rig.Check(errors.Join(err, at.Close()), "starting the scheduler")
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = process.Wait()
		_ = at.Close()
	}()
	return &Process{ctx: b.ctx, process: process, log: log.Name(), exited: exited, url: "https://" + at.Address(),
		http: &http.Client{Timeout: time.Minute, Transport: transport}}
}

func (b *Bed) writeConfig(path string, config []byte) {
	document := map[string]any{}
	rig.Check(yaml.Unmarshal(config, &document), "reading the scheduler's configuration")
	document["clientConnection"] = map[string]any{"kubeconfig": b.box.Kubeconfig(), "qps": 5000, "burst": 5000}
	document["leaderElection"] = map[string]any{"leaderElect": false}
	rig.Check(os.WriteFile(path, rig.Must(yaml.Marshal(document)), 0o600), "writing the scheduler's configuration")
}

// Stop kills the process.
func (p *Process) Stop() {
	_ = p.process.Process.Kill()
	<-p.exited
}

// PID is the number of the process.
func (p *Process) PID() int { return p.process.Process.Pid }

// maxPage bounds what is read of a page: metrics of thousands of series.
const maxPage = 64 << 20

// Metrics reads the metrics of the process.
func (p *Process) Metrics() Metrics {
	request, err := http.NewRequestWithContext(p.ctx, http.MethodGet, p.url+"/metrics", nil)
	rig.Fail(err)
	response, err := p.http.Do(request)
	rig.Check(err, "reading the scheduler's metrics")
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", response.Status, body)
	}
	rig.Check(err, "reading the scheduler's metrics")
	return parseMetrics(body)
}
