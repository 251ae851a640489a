package sandbox_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/sandbox/port"
)

// startTimeout is for a machine that builds and tests other things meanwhile.
const startTimeout = 3 * time.Minute

// eventuallyWithin bounds every wait, on such a machine, too.
const eventuallyWithin = 4 * time.Minute

const threeNodes = `shapes: [{name: n, count: 3, labels: {nvidia.com/gpu.product: NVIDIA-L4}, allocatable: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "4"}}]`

// start brings up a sandbox that ends with the test.
func start(t *testing.T, opts sandbox.Options) *sandbox.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "sandbox")
	}
	opts.StopWithParent = true
	sb, err := sandbox.Start(ctx, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return sb
}

func nodesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func client(t *testing.T, sb *sandbox.Sandbox) kubernetes.Interface {
	t.Helper()
	config, err := sb.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, eventuallyWithin, true, done); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func pid(t *testing.T, sb *sandbox.Sandbox, component string) int {
	t.Helper()
	p, err := sb.PID(component)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// apiPort is the port of the API server.
func apiPort(t *testing.T, sb *sandbox.Sandbox) int {
	t.Helper()
	config, err := sb.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(server.Port())
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// alive is false once a process has ended and its parent knows. Only then are all of its files closed.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// runPod creates a pod for a profile and waits until it runs.
func runPod(t *testing.T, c kubernetes.Interface, name, profile string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{SchedulerName: profile, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if _, err := c.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pod "+name+" to run", func(ctx context.Context) (bool, error) {
		got, err := c.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && got.Status.Phase == corev1.PodRunning, err
	})
}

//nolint:tparallel // the parts share one sandbox, which some of them change
func TestSandboxIsAClusterOfItsOwn(t *testing.T) {
	t.Parallel()
	sb := start(t, sandbox.Options{NodesFile: nodesFile(t, threeNodes)})
	c := client(t, sb)

	nodes, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Fatalf("got %d nodes and error %v, want 3", len(nodes.Items), err)
	}
	for _, profile := range []string{"gpu-aware-scheduler", "cost-optimized-scheduler", "gang-scheduler", "berth-scheduler"} {
		runPod(t, c, profile, profile)
	}

	t.Run("no file can be read by others", func(t *testing.T) { nothingIsOpen(t, sb) })
	t.Run("no secret is in a log or in a dump", func(t *testing.T) { nothingIsTold(t, sb, c) })
	t.Run("etcd serves watches on a port that HTTP does not share", func(t *testing.T) {
		log, err := os.ReadFile(filepath.Join(sb.Dir(), "logs", "etcd.log"))
		if err != nil || strings.Contains(string(log), "http and grpc server on single port") {
			t.Errorf("error %v; etcd says:\n%s", err, log)
		}
	})
	t.Run("the scheduler has its own rights and no others", func(t *testing.T) {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(sb.Dir(), "scheduler.kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		scheduler, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, ask := range []struct {
			verb, resource, subresource string
			want                        bool
		}{{"create", "pods", "binding", true}, {"list", "secrets", "", false}, {"delete", "nodes", "", false}} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: ask.verb, Resource: ask.resource, Subresource: ask.subresource, Namespace: "default"},
			}}
			got, err := scheduler.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Allowed != ask.want {
				t.Errorf("%s %s/%s: allowed is %v, want %v", ask.verb, ask.resource, ask.subresource, got.Status.Allowed, ask.want)
			}
		}
	})
	t.Run("a namespace and what is in it can be deleted", func(t *testing.T) {
		if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short-lived"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.CoreV1().Namespaces().Delete(t.Context(), "short-lived", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the namespace to go", func(ctx context.Context) (bool, error) {
			_, err := c.CoreV1().Namespaces().Get(ctx, "short-lived", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	})
	t.Run("a second one in the same folder is refused and harms nothing", func(t *testing.T) {
		_, err := sandbox.Start(t.Context(), sandbox.Options{Dir: sb.Dir()}, nil)
		if !errors.Is(err, sandbox.ErrUp) || !strings.Contains(err.Error(), sb.Kubeconfig()) {
			t.Errorf("got error %v, want ErrUp with the kubeconfig's path", err)
		}
		if _, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("the first is gone: %v", err)
		}
	})
	t.Run("a pod ends as it is told, and stays as it ended", func(t *testing.T) { podsEnd(t, c) })
	t.Run("a killed scheduler comes back", func(t *testing.T) {
		before := pid(t, sb, "scheduler")
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		runPod(t, c, "after-the-kill", "berth-scheduler")
		if now := pid(t, sb, "scheduler"); now == before {
			t.Errorf("the scheduler still has process %d", now)
		}
	})
}

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
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pids[2:] {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "another API server, whose port is not given to others meanwhile", func(context.Context) (bool, error) {
		if stolen, err := port.Reserve(served); err == nil {
			return false, errors.Join(errors.New("the port can be had"), stolen.Close())
		}
		return pid(t, sb, "kube-apiserver") != pids[3], nil
	})
	eventually(t, "the API server to be back with its data", func(ctx context.Context) (bool, error) {
		_, err := c.CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{})
		return err == nil, nil
	})
	pids = append(pids, pid(t, sb, "etcd"), pid(t, sb, "kube-apiserver"))

	if err := sb.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, p := range pids {
		eventually(t, "process "+strconv.Itoa(p)+" to end", func(context.Context) (bool, error) { return !alive(p), nil })
	}
	if _, err := os.Stat(sb.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	// The cleanup stops it once more, which has to be harmless: the folder is made and removed.
}

func TestACrashedSandboxIsCleanedUpByTheNext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sandbox")
	sb := start(t, sandbox.Options{Dir: dir})
	scheduler := pid(t, sb, "scheduler")
	controlPlane := pid(t, sb, "control-plane")
	if err := syscall.Kill(controlPlane, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Until then the lock of the folder is held.
	eventually(t, "the control plane to die", func(context.Context) (bool, error) { return !alive(controlPlane), nil })
	eventually(t, "the scheduler to die with its control plane", func(context.Context) (bool, error) { return !alive(scheduler), nil })
	again := start(t, sandbox.Options{Dir: dir, NoScheduler: true, NoKubelet: true})
	if _, err := client(t, again).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestABareSandboxHasNothingOfBerth(t *testing.T) {
	t.Parallel()
	sb := start(t, sandbox.Options{Bare: true, NoKubelet: true})
	roles, err := client(t, sb).RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles.Items {
		if strings.HasPrefix(role.Name, "berth") {
			t.Errorf("there is a ClusterRole %s", role.Name)
		}
	}
	groups, err := client(t, sb).Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		if group.Name == "scheduling.x-k8s.io" || group.Name == "berth.dev" {
			t.Errorf("the API group %s is served", group.Name)
		}
	}
	if scheduler, err := sb.PID("scheduler"); err == nil {
		t.Errorf("a scheduler runs as process %d", scheduler)
	}
}

//nolint:tparallel // each part starts a control plane; two at once are enough for a small machine
func TestBadInputStartsNothing(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file := nodesFile(t, "x")
	tests := []struct {
		name string
		opts sandbox.Options
		want string
		// late errors turn out while the sandbox starts.
		late bool
	}{
		{"a nodes file that is not there", sandbox.Options{NodesFile: "/does/not/exist"}, "/does/not/exist: no such file", false},
		{"a malformed nodes file", sandbox.Options{NodesFile: file}, file, false},
		{"a scheduler configuration that is not there", sandbox.Options{SchedulerConfig: "/does/not/exist"}, "/does/not/exist: no such file", false},
		{"controllers by name where all of them run", sandbox.Options{Controllers: []string{"job-controller"}}, "makes no sense without NoKubelet", false},
		{"a scheduler configuration without a scheduler", sandbox.Options{SchedulerConfig: file, NoScheduler: true}, "makes no sense without the scheduler", false},
		{"a busy port", sandbox.Options{Port: busy.Addr().(*net.TCPAddr).Port}, "address already in use", true},
		{"a port that none is", sandbox.Options{Port: 70000}, "port 70000: must be 0 (any free port) to 65535", false},
		{"an unknown feature gate", sandbox.Options{FeatureGates: []string{"NoSuchGate=true"}}, "unrecognized feature gate: NoSuchGate", true},
		{"an API that the server does not know", sandbox.Options{RuntimeConfig: []string{"nosuch/v1=true"}}, "nosuch", true},
		{"the replacement for the default scheduler without a scheduler", sandbox.Options{ReplaceDefault: true, NoScheduler: true}, "makes no sense without the scheduler", false},
		{"two configurations", sandbox.Options{ReplaceDefault: true, SchedulerConfig: file}, "the scheduler has one configuration", false},
		{"a scheduler configuration that cannot be followed", sandbox.Options{SchedulerConfig: os.DevNull}, "must be a regular file", false},
		{"a folder that is a file", sandbox.Options{Dir: file}, "not a directory", false},
		{"a folder that holds something else", sandbox.Options{Dir: filepath.Dir(file)}, "is not empty and holds no sandbox", false},
		{"a scheduler configuration that the scheduler refuses", sandbox.Options{SchedulerConfig: nodesFile(t, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofilez: []\n")}, `unknown field "profilez"`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.opts.Dir == "" {
				tt.opts.Dir = filepath.Join(t.TempDir(), "of", "sandbox")
			}
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
			if made := filepath.Dir(tt.opts.Dir); filepath.Base(made) == "of" {
				if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is left behind (%v)", made, err)
				}
			}
			if input := (sandbox.InputError{}); errors.As(err, &input) == tt.late {
				t.Errorf("error %q: is it one of the input? %v, want %v", err, !tt.late, tt.late)
			}
		})
	}
}
