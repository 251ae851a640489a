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

	"github.com/google/pprof/profile"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/sandbox/pki"
	"berth.dev/berth/pkg/sandbox/port"
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

// Process is a scheduler process under measurement, or an extender.
type Process struct {
	// Address is where an extender listens.
	Address string
	// Extender is the process that a scheduler calls, nil if it calls none.
	Extender *Process

	bed     *Bed
	process *exec.Cmd
	log     string
	exited  chan struct{}
	url     string
	http    *http.Client
}

// StartScheduler starts a scheduler. The connection and the leader election in its configuration are replaced.
func (b *Bed) StartScheduler(c Contender) *Process {
	// What the scheduler says of itself is read without credentials, under the certificate of the control plane.
	keys := pki.Dir(sandbox.Layout(b.box.Dir()).PKI())
	args := []string{"--bind-address=127.0.0.1", "--tls-cert-file=" + keys.Cert(pki.Server),
		"--tls-private-key-file=" + keys.Key(pki.Server), "--authorization-always-allow-paths=/metrics,/debug/pprof/*"}
	if len(c.Gates) > 0 {
		args = append(args, "--feature-gates="+strings.Join(c.Gates, ","))
	}
	return b.run("berth-scheduler", "https", c.Config, func(at *port.Reservation) []string {
		return append(args, "--secure-port="+strconv.Itoa(at.Number))
	})
}

// Ready starts a scheduler and has it place a pod in a new namespace: it knows the cluster then. What is bound in the
// namespace is counted from then on.
func (b *Bed) Ready(c Contender, pod *v1.Pod) (*Process, *Bound) {
	b.Namespace(pod.Namespace)
	bound := b.Watch(pod.Namespace)
	scheduler := b.StartScheduler(c)
	b.CreatePod(pod)
	bound.Await(1, scheduler)
	return scheduler, bound
}

// StartExtender starts an extender with a KubeSchedulerConfiguration, whose connection is replaced. It waits until the
// extender has seen the whole cluster.
func (b *Bed) StartExtender(config []byte) *Process {
	e := b.run("berth-extender", "http", config, func(at *port.Reservation) []string {
		return []string{"--listen=" + at.Address()}
	})
	rig.Check(wait.PollUntilContextCancel(b.ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		select {
		case <-e.exited:
			return false, errors.New(e.lastWords())
		default:
		}
		_, err := e.get("/readyz")
		return err == nil, nil
	}), "waiting for the extender")
	return e
}

// run starts a binary of the project with a configuration. It serves its metrics on a port that it keeps until it ends.
func (b *Bed) run(binary, scheme string, config []byte, args func(*port.Reservation) []string) *Process {
	berth := rig.Must(sandbox.FindBinary())
	dir := rig.Must(os.MkdirTemp(b.dir, binary))
	file := filepath.Join(dir, "config.yaml")
	b.writeConfig(file, config)
	transport := rig.Must(rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: pki.Dir(sandbox.Layout(b.box.Dir()).PKI()).Cert(pki.CA)}}))
	log := rig.Must(os.Create(filepath.Join(dir, "log")))
	defer func() { _ = log.Close() }()
	at := rig.Must(port.Reserve(0))
	process := exec.Command(filepath.Join(filepath.Dir(berth), binary), append(args(at), "--config="+file)...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process.Stdout, process.Stderr = log, log
	process.Env = append(os.Environ(), b.SchedulerEnv...)
	if err := process.Start(); err != nil {
		rig.Check(errors.Join(err, at.Close()), "starting %s", binary)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = process.Wait()
		_ = at.Close()
	}()
	return &Process{Address: at.Address(), bed: b, process: process, log: log.Name(), exited: exited,
		url: scheme + "://" + at.Address(), http: &http.Client{Timeout: 5 * time.Minute, Transport: transport}}
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

// lastWords is the last line of the process's log.
func (p *Process) lastWords() string { return sandbox.LastLogLine(p.log) }

// PID is the number of the process.
func (p *Process) PID() int { return p.process.Process.Pid }

// Metrics reads the metrics of the process.
func (p *Process) Metrics() Metrics {
	body, err := p.get("/metrics")
	rig.Check(err, "reading the scheduler's metrics")
	return parseMetrics(body)
}

// Profile takes a CPU profile of the process for a time.
func (p *Process) Profile(d time.Duration) *profile.Profile {
	body, err := p.get(fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(d.Seconds())))
	rig.Check(err, "profiling the scheduler")
	return rig.Must(profile.ParseData(body))
}

// maxPage bounds what is read of a page: metrics of thousands of series, a profile of minutes.
const maxPage = 256 << 20

// get reads a page that the process serves.
func (p *Process) get(path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(p.bed.ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := p.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.200s", response.Status, body)
	}
	return body, nil
}
