package scenarios_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/require"
)

// cluster is a control plane with a scheduler, in which scenarios happen.
type cluster interface {
	// config leads to the API, as an administrator.
	config() (*rest.Config, error)
	// now is the time that has passed, by which limits are measured.
	now() time.Duration
	// metric is a family of the scheduler's metrics, nil if it has none of that name.
	metric(ctx context.Context, name string) (*dto.MetricFamily, error)
	// heard returns the newest version of each resource that the scheduler has heard of, nothing where it hears of all at
	// once.
	heard(ctx context.Context) (map[schema.GroupResource]int64, error)
	// leads reports whether a scheduler has led after a moment.
	leads(ctx context.Context, after time.Time) bool
	// kill ends the scheduler without a warning; another one is started in its place.
	kill(ctx context.Context) error
	// freeze stops the API for a while; started is called when it is frozen.
	freeze(ctx context.Context, d time.Duration, started func()) error
}

// sandboxed is a sandbox: a real API server, and the scheduler as a process, or in this one.
type sandboxed struct {
	sandbox *sandbox.Sandbox
	// here says that the scheduler runs in this process.
	here bool
}

func (r sandboxed) config() (*rest.Config, error) {
	config, err := r.sandbox.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000
	return config, nil
}

func (sandboxed) now() time.Duration { return machine.now() }

func (r sandboxed) metric(ctx context.Context, name string) (*dto.MetricFamily, error) {
	if r.here {
		return metricHere(name)
	}
	config, err := r.sandbox.SchedulerConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	page, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(linesWith(name, page)))
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	return families[name], nil
}

// linesWith are the lines about one metric. To parse all, many times a second, takes more than the rest of a script.
func linesWith(name string, page []byte) []byte {
	var lines []byte
	for line := range bytes.Lines(page) {
		if bytes.Contains(line, []byte(name)) {
			lines = append(lines, line...)
		}
	}
	return lines
}

// The lease by which the scheduler under test leads, as in the configurations in testdata.
const leaseNamespace, leaseName = metav1.NamespaceSystem, "berth-scheduler"

func (r sandboxed) leads(ctx context.Context, after time.Time) bool {
	config, err := r.config()
	if err != nil {
		return false
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false
	}
	lease, err := client.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" &&
		lease.Spec.RenewTime.After(after)
}

func (r sandboxed) kill(context.Context) error {
	pid, err := r.sandbox.PID("scheduler")
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// freeze stops the process that holds etcd and the API server. It is in no state to be stopped by anything else
// meanwhile, so a process that outlives this one sees to it that it does go on.
func (r sandboxed) freeze(ctx context.Context, d time.Duration, started func()) error {
	pid, err := r.sandbox.PID("control-plane")
	if err != nil {
		return err
	}
	guard := exec.Command("sh", "-c", fmt.Sprintf("sleep %d; kill -CONT %d", int(d.Seconds())+5, pid))
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := guard.Start(); err != nil {
		return err
	}
	defer func() {
		_ = syscall.Kill(-guard.Process.Pid, syscall.SIGKILL)
		_ = guard.Wait()
	}()
	started()
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runReal runs a script in a sandbox, whose limits have slack.
func runReal(t *testing.T, s script) {
	w, err := newWorld(t, sandboxed{s.in.start(t), s.in.own != ""}, uniqueName(s.name))
	require.NoError(t, err)
	w.slack = *slack
	ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
	defer cancel()
	err = w.play(ctx, s.text)
	w.clean()
	require.NoError(t, err)
}
