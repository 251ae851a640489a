package live

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"sigs.k8s.io/yaml"

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
func Installed(name, profile string) (Contender, error) {
	config, err := manifests.Files.ReadFile("base/scheduler-config.yaml")
	if err != nil {
		return Contender{}, fmt.Errorf("reading the installed configuration: %w", err)
	}
	return Contender{name, profile, config, InstalledGates}, nil
}

// Process is a scheduler process under measurement, or an extender.
type Process struct {
	// Address is where an extender listens.
	Address string
	// Extender is the process that a scheduler calls, nil if it calls none.
	Extender *Process

	process *exec.Cmd
	log     string
	exited  chan struct{}
	url     string
	http    *http.Client
}

// StartScheduler starts a scheduler. The connection and the leader election in its configuration are replaced.
func (b *Bed) StartScheduler(c Contender) (*Process, error) {
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

// Ready starts a scheduler and has it place a pod in a new namespace: it knows the cluster then. It counts what is
// bound in the namespace from then on.
func (b *Bed) Ready(ctx context.Context, c Contender, namespace string, pod *v1.Pod) (*Process, *Bound, error) {
	if err := b.Namespace(ctx, namespace); err != nil {
		return nil, nil, err
	}
	bound, err := b.Watch(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	scheduler, err := b.StartScheduler(c)
	if err != nil {
		return nil, nil, err
	}
	if err := b.CreatePod(ctx, pod); err != nil {
		scheduler.Stop()
		return nil, nil, err
	}
	if err := bound.Await(ctx, 1, scheduler); err != nil {
		scheduler.Stop()
		return nil, nil, err
	}
	return scheduler, bound, nil
}

// StartExtender starts an extender with a KubeSchedulerConfiguration, whose connection is replaced. It waits until the
// extender has seen the whole cluster.
func (b *Bed) StartExtender(ctx context.Context, config []byte) (*Process, error) {
	var address string
	e, err := b.run("berth-extender", "http", config, func(at *port.Reservation) []string {
		address = at.Address()
		return []string{"--listen=" + address, "--leader-elect=false"}
	})
	if err != nil {
		return nil, err
	}
	e.Address = address
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-e.exited:
			return false, errors.New(e.lastWords())
		default:
		}
		_, err := e.get(ctx, "/readyz")
		return err == nil, nil
	})
	if err != nil {
		e.Stop()
		return nil, fmt.Errorf("waiting for the extender: %w", err)
	}
	return e, nil
}

// run starts a binary of the project with a configuration. It serves its metrics on a port that it keeps until it ends.
func (b *Bed) run(binary, scheme string, config []byte, args func(*port.Reservation) []string) (_ *Process, err error) {
	berth, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(b.dir, fmt.Sprintf("%s-%d", binary, b.started))
	b.started++
	if err := b.writeConfig(name+".yaml", config); err != nil {
		return nil, err
	}
	client, err := b.httpClient()
	if err != nil {
		return nil, err
	}
	at, err := port.Reserve(0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, at.Close())
		}
	}()
	log, err := os.Create(name + ".log")
	if err != nil {
		return nil, fmt.Errorf("creating a log: %w", err)
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(filepath.Join(filepath.Dir(berth), binary), append(args(at), "--config="+name+".yaml")...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process.Stdout, process.Stderr = log, log
	process.Env = append(os.Environ(), b.SchedulerEnv...)
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", binary, err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = process.Wait()
		_ = at.Close()
	}()
	return &Process{process: process, log: log.Name(), exited: exited, url: scheme + "://" + at.Address(), http: client}, nil
}

// httpClient trusts the authority of the control plane.
func (b *Bed) httpClient() (*http.Client, error) {
	path := pki.Dir(sandbox.Layout(b.box.Dir()).PKI()).Cert(pki.CA)
	authority, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of the control plane: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("reading the authority of the control plane: %s has no certificate", path)
	}
	return &http.Client{
		Timeout:   5 * time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	}, nil
}

func (b *Bed) writeConfig(path string, config []byte) error {
	document := map[string]any{}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	document["clientConnection"] = map[string]any{"kubeconfig": b.box.Kubeconfig(), "qps": 5000, "burst": 5000}
	document["leaderElection"] = map[string]any{"leaderElect": false}
	config, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return fmt.Errorf("writing the scheduler's configuration: %w", err)
	}
	return nil
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
func (p *Process) Metrics(ctx context.Context) (Metrics, error) {
	body, err := p.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	return parseMetrics(body)
}

// Profile takes a CPU profile of the process for a time.
func (p *Process) Profile(ctx context.Context, d time.Duration) (*profile.Profile, error) {
	body, err := p.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(d.Seconds())))
	if err != nil {
		return nil, fmt.Errorf("profiling the scheduler: %w", err)
	}
	parsed, err := profile.ParseData(body)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's profile: %w", err)
	}
	return parsed, nil
}

// maxPage bounds what is read of a page: metrics of thousands of series, a profile of minutes.
const maxPage = 256 << 20

// get reads a page that the process serves.
func (p *Process) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
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
