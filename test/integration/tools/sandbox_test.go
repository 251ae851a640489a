package tools_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// startTimeout is for a machine that builds and tests other things meanwhile.
const startTimeout = 3 * time.Minute

// start brings up a sandbox that ends with the test.
func start(t *testing.T, opts sandbox.Options, told ...string) *sandbox.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "sandbox")
	}
	opts.StopWithParent = true
	var steps []string
	sb, err := sandbox.Start(ctx, opts, func(step string) { steps = append(steps, step) })
	require.NoError(t, err)
	for _, step := range told {
		if !slices.Contains(steps, step) {
			t.Errorf("the steps are %q, want %q among them", steps, step)
		}
	}
	t.Cleanup(func() {
		if err := sb.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return sb
}

func client(t *testing.T, sb *sandbox.Sandbox) kubernetes.Interface {
	t.Helper()
	config, err := sb.RESTConfig()
	require.NoError(t, err)
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return c
}

func pid(t *testing.T, sb *sandbox.Sandbox, component string) int {
	t.Helper()
	p, err := sb.PID(component)
	require.NoError(t, err)
	return p
}

// apiPort is the port of the API server.
func apiPort(t *testing.T, sb *sandbox.Sandbox) int {
	t.Helper()
	config, err := sb.RESTConfig()
	require.NoError(t, err)
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	number, err := strconv.Atoi(server.Port())
	require.NoError(t, err)
	return number
}

func statError(path string) error {
	_, err := os.Stat(path)
	return err
}

// alive is false once a process has ended and its parent knows. Only then are all of its files closed.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	sb := start(t, sandbox.Options{Split: true})
	pids := []int{}
	for _, component := range []string{"control-plane", "scheduler", "etcd", "kube-apiserver"} {
		pids = append(pids, pid(t, sb, component))
	}

	served := apiPort(t, sb)

	// With the processes apart, one can die without the others, and what was stored is still there.
	c := client(t, sb)
	if _, err := c.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pids[2:] {
		require.NoError(t, syscall.Kill(p, syscall.SIGKILL))
	}
	box.Await(t, "another API server, whose port is not given to others meanwhile", func(context.Context) (bool, error) {
		if stolen, err := sandbox.ReservePort(served); err == nil {
			return false, errors.Join(errors.New("the port can be had"), stolen.Close())
		}
		return pid(t, sb, "kube-apiserver") != pids[3], nil
	})
	box.Await(t, "the API server to be back with its data", func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{})
		return err == nil, nil
	})
	pids = append(pids, pid(t, sb, "etcd"), pid(t, sb, "kube-apiserver"))

	require.NoError(t, sb.Stop())
	for _, p := range pids {
		box.Await(t, "process "+strconv.Itoa(p)+" to end", func(context.Context) (bool, error) { return !alive(p), nil })
	}
	if err := statError(sb.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	// The cleanup stops it once more, which has to be harmless: the folder is made and removed.
}

func TestACrashedSandboxIsCleanedUpByTheNext(t *testing.T) {
	t.Parallel()
	const config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"leaderElection: {resourceName: berth-scheduler}\n" +
		"profiles: [{schedulerName: berth-scheduler}]\n"
	dir, file := filepath.Join(t.TempDir(), "sandbox"), write(t, "config.yaml", config)
	sb := start(t, sandbox.Options{Dir: dir, SchedulerConfig: file, NoKubelet: true})
	scheduler := pid(t, sb, "scheduler")
	controlPlane := pid(t, sb, "control-plane")
	require.NoError(t, syscall.Kill(controlPlane, syscall.SIGKILL))
	// Until then the lock of the folder is held.
	box.Await(t, "the control plane to die", func(context.Context) (bool, error) { return !alive(controlPlane), nil })
	box.Await(t, "the scheduler to die with its control plane",
		func(context.Context) (bool, error) { return !alive(scheduler), nil })
	again := start(t, sandbox.Options{Dir: dir, NoScheduler: true, NoKubelet: true},
		"removing the data of a control plane that was not stopped with `berth down`")
	if _, err := client(t, again).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// What can be said before anything is started is in the unit tests, and a busy port and a wrong feature gate in those
// of the command.
//
//nolint:tparallel // each part starts a control plane; two at once are enough for a small machine
func TestWhatTurnsOutWhileItStartsLeavesNothing(t *testing.T) {
	t.Parallel()
	refused := write(t, "config.yaml",
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofilez: []\n")
	for name, tt := range map[string]struct {
		opts sandbox.Options
		want string
	}{
		"an API that the server does not know": {sandbox.Options{RuntimeConfig: []string{"nosuch/v1=true"}},
			"nosuch"},
		"a scheduler configuration that the scheduler refuses": {sandbox.Options{SchedulerConfig: refused}, `unknown field "profilez"`},
	} {
		t.Run(name, func(t *testing.T) {
			tt.opts.Dir = filepath.Join(t.TempDir(), "of", "sandbox")
			ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
			defer cancel()
			sb, err := sandbox.Start(ctx, tt.opts, nil)
			if err == nil {
				t.Error("it started", sb.Stop())
				return
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %q, want one line with %q", err, tt.want)
			}
			if made := filepath.Dir(tt.opts.Dir); !errors.Is(statError(made), fs.ErrNotExist) {
				t.Errorf("%s is left behind", made)
			}
			if errors.As(err, new(sandbox.InputError)) {
				t.Errorf("error %q is one of the input", err)
			}
		})
	}
}
