package rig

import (
	"bytes"
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
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/sandbox/pki"
	"berth.dev/berth/pkg/sandbox/port"
)

// InstalledGates are the feature gates with which the manifests run the scheduler.
var InstalledGates = []string{"NominatedNodeNameForExpectation=false"}

// Scheduler is a scheduler process under measurement.
type Scheduler struct {
	process *exec.Cmd
	log     string
	exited  chan struct{}
	url     string
	http    *http.Client
}

// StartScheduler starts a scheduler with a KubeSchedulerConfiguration, but for the connection and the leader election,
// which the rig sees to, and with these feature gates ("Name=true").
func (r *Rig) StartScheduler(config []byte, gates ...string) (*Scheduler, error) {
	binary, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(r.dir, fmt.Sprintf("scheduler-%d", r.started))
	r.started++
	if err := r.writeConfig(name+".yaml", config); err != nil {
		return nil, err
	}
	at, err := port.Reserve(0)
	if err != nil {
		return nil, err
	}
	// What the scheduler says of itself is read without credentials, under the certificate of the control plane.
	keys := pki.Dir(sandbox.Layout(r.box.Dir()).PKI())
	args := []string{"--config=" + name + ".yaml", "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(at.Number),
		"--tls-cert-file=" + keys.Cert(pki.Server), "--tls-private-key-file=" + keys.Key(pki.Server),
		"--authorization-always-allow-paths=/metrics,/debug/pprof/*"}
	if len(gates) > 0 {
		args = append(args, "--feature-gates="+strings.Join(gates, ","))
	}
	return r.run(filepath.Join(filepath.Dir(binary), "berth-scheduler"), name+".log", at, "https://"+at.Address(), args)
}

// Extender is an extender process under measurement, with the gauges of a scheduler, and where it listens.
type Extender struct {
	*Scheduler
	Address string
}

// StartExtender starts an extender with a KubeSchedulerConfiguration, but for the connection. It waits until the
// extender has seen the whole cluster.
func (r *Rig) StartExtender(ctx context.Context, config []byte) (*Extender, error) {
	binary, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(r.dir, fmt.Sprintf("extender-%d", r.started))
	r.started++
	if err := r.writeConfig(name+".yaml", config); err != nil {
		return nil, err
	}
	at, err := port.Reserve(0)
	if err != nil {
		return nil, err
	}
	e := &Extender{Address: at.Address()}
	e.Scheduler, err = r.run(filepath.Join(filepath.Dir(binary), "berth-extender"), name+".log", at, "http://"+e.Address,
		[]string{"--config=" + name + ".yaml", "--listen=" + e.Address, "--leader-elect=false"})
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := e.get(ctx, "/readyz")
		if err == nil {
			return e, nil
		}
		select {
		case <-tick.C:
		case <-e.Exited():
			return nil, fmt.Errorf("starting the extender: %s", e.LastWords())
		case <-ctx.Done():
			e.Stop()
			return nil, fmt.Errorf("waiting for the extender: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// run starts a process that serves its metrics at a URL, on a port that it keeps until it ends.
func (r *Rig) run(binary, logFile string, at *port.Reservation, url string, args []string) (_ *Scheduler, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, at.Close())
		}
	}()
	client, err := r.httpClient()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("creating a log: %w", err)
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(binary, args...)
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process.Stdout, process.Stderr = log, log
	process.Env = append(os.Environ(), r.SchedulerEnv...)
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(binary), err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = process.Wait()
		_ = at.Close()
	}()
	return &Scheduler{
		process: process,
		log:     log.Name(),
		exited:  exited,
		url:     url,
		http:    client,
	}, nil
}

// httpClient trusts the authority of the control plane.
func (r *Rig) httpClient() (*http.Client, error) {
	path := pki.Dir(sandbox.Layout(r.box.Dir()).PKI()).Cert(pki.CA)
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

func (r *Rig) writeConfig(path string, config []byte) error {
	document := map[string]any{}
	if err := yaml.Unmarshal(config, &document); err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	document["clientConnection"] = map[string]any{"kubeconfig": r.box.Kubeconfig(), "qps": 5000, "burst": 5000}
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

// Stop kills the scheduler.
func (s *Scheduler) Stop() {
	_ = s.process.Process.Kill()
	<-s.exited
}

// Exited is closed when the scheduler has ended, which it does of its own accord only on an error.
func (s *Scheduler) Exited() <-chan struct{} { return s.exited }

// LastWords is the last line of the scheduler's log.
func (s *Scheduler) LastWords() string { return sandbox.LastLogLine(s.log) }

// PID is the scheduler's process.
func (s *Scheduler) PID() int { return s.process.Process.Pid }

// Metrics reads the scheduler's metrics.
func (s *Scheduler) Metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	body, err := s.get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	return parseMetrics(body)
}

// Profile takes a CPU profile of the scheduler for so long.
func (s *Scheduler) Profile(ctx context.Context, d time.Duration) (*profile.Profile, error) {
	body, err := s.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(d.Seconds())))
	if err != nil {
		return nil, fmt.Errorf("profiling the scheduler: %w", err)
	}
	p, err := profile.ParseData(body)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's profile: %w", err)
	}
	return p, nil
}

// get reads a page of the scheduler's.
func (s *Scheduler) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(request)
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

// maxPage bounds what is read of a page: metrics of thousands of series, a profile of minutes.
const maxPage = 256 << 20

func parseMetrics(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	return families, nil
}

// CPU is the CPU time that the scheduler has used.
func (s *Scheduler) CPU() (time.Duration, error) { return ProcessCPU(s.PID()) }

// Writes is how many writes of pods, events and PodGroups the API server has served.
func (r *Rig) Writes(ctx context.Context) (float64, error) {
	text, err := r.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	families, err := parseMetrics(text)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		switch labels["resource"] {
		case "pods", "events", "podgroups":
		default:
			continue
		}
		switch labels["verb"] {
		case "POST", "PATCH", "PUT":
			total += m.GetCounter().GetValue()
		}
	}
	return total, nil
}
