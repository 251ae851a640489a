package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// The lease is shorter than the shipped 15 s, so that a run does not consist of waiting for it.
const (
	leaseSeconds = 4
	renewSeconds = 3
	retrySeconds = 1
)

// leading is in the metrics of a scheduler that leads.
var leading = regexp.MustCompile(`(?m)^leader_election_master_status\{.*\} 1$`)

// replica is one scheduler process, which has to be started again when it ends.
type replica struct {
	number int
	at     *sandbox.Port
	cmd    *exec.Cmd
	exited chan struct{}
}

// schedulerConfig is the shipped configuration with the short lease and the connection through the proxy.
func schedulerConfig(kubeconfig string) ([]byte, error) {
	shipped, err := manifests.Files.ReadFile("base/scheduler-config.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	config["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	for key, seconds := range map[string]int{"leaseDuration": leaseSeconds, "renewDeadline": renewSeconds,
		"retryPeriod": retrySeconds} {
		config["leaderElection"].(map[string]any)[key] = fmt.Sprintf("%ds", seconds)
	}
	return yaml.Marshal(config)
}

// startReplica starts a scheduler in the place of one that has ended, if there was one.
func (c *cluster) startReplica(r *replica) error {
	layout := sandbox.Layout(c.box.Dir())
	keys := layout.Keys()
	log, err := os.OpenFile(filepath.Join(c.dir, fmt.Sprintf("scheduler-%d.log", r.number)),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the scheduler's log: %w", err)
	}
	defer log.Close()
	kubeconfig := filepath.Join(c.dir, "scheduler.kubeconfig")
	cmd := exec.Command(filepath.Join(filepath.Dir(c.binary), "berth-scheduler"),
		"--config="+filepath.Join(c.dir, "scheduler-config.yaml"), "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", r.at.Number),
		"--tls-cert-file="+keys.Cert(sandbox.KeyServer), "--tls-private-key-file="+keys.Key(sandbox.KeyServer),
		"--client-ca-file="+keys.Cert(sandbox.KeyCA),
		// What it serves of itself is asked for while the API server is gone.
		"--authorization-always-allow-paths=/metrics,/readyz,/debug/pprof/*",
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--feature-gates=NominatedNodeNameForExpectation=false", "--v=2")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the scheduler: %w", err)
	}
	r.cmd, r.exited = cmd, make(chan struct{})
	exited := r.exited
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	return nil
}

// alive says whether the process has not ended.
func (r *replica) alive() bool {
	if r.exited == nil {
		return false
	}
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// signal sends the process a signal, and for SIGKILL waits until it is gone.
func (r *replica) signal(s syscall.Signal) error {
	if err := r.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending scheduler %d the signal %v: %w", r.number, s, err)
	}
	if s == syscall.SIGKILL {
		<-r.exited
	}
	return nil
}

// leads says whether a replica holds a lease that is in force: what it serves of itself says so.
func (c *cluster) leads(ctx context.Context, r *replica) bool {
	if !r.alive() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	text, err := c.page(ctx, r, "/metrics")
	return err == nil && leading.Match(text)
}

// page reads a page that a scheduler serves.
func (c *cluster) page(ctx context.Context, r *replica, path string) ([]byte, error) {
	config := rest.CopyConfig(c.config)
	config.Host = "https://" + r.at.Address()
	client, err := kubernetes.NewForConfigAndClient(config, c.toSchedulers)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	text, err := client.Discovery().RESTClient().Get().RequestURI(path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s of scheduler %d: %w", path, r.number, err)
	}
	return text, nil
}

// leader is the replica that leads, or nil.
func (c *cluster) leader(ctx context.Context) *replica {
	for _, r := range c.replicas {
		if c.leads(ctx, r) {
			return r
		}
	}
	return nil
}
