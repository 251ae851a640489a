package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// The nodes of each pool are for one of the scenarios.
const nodes = `shapes:
- name: a100
  count: 2
  labels: {pool: main, nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: "81920", nvidia.com/gpu.count: "8"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
- name: t4
  count: 2
  labels: {pool: main, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.memory: "15360", nvidia.com/gpu.count: "4"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "4"}
- name: shared
  count: 1
  labels: {pool: main, nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.memory: "23034", nvidia.com/gpu.count: "2", berth.dev/gpu-mode: shared}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "2"}
- name: large
  count: 1
  labels: {pool: full, nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: "81920", nvidia.com/gpu.count: "4"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "4"}
- name: small
  count: 1
  labels: {pool: full, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.memory: "15360", nvidia.com/gpu.count: "4"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "4"}
- name: hami
  count: 1
  labels: {pool: hami, nvidia.com/gpu.product: Tesla-T4}
  annotations: {hami.io/node-nvidia-register: "GPU-a,10,16384,100,NVIDIA-Tesla T4,0,true:"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "10"}
- name: claims
  count: 1
  labels: {pool: claims}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110"}
`

// The stock profile of a scheduler without a plugin of ours, with the extender as its filter, judge and binder.
const stockWithExtender = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q}
podMaxBackoffSeconds: 1
profiles:
  - schedulerName: default-scheduler
    pluginConfig:
      # Of these only HAMi knows; no node has them.
      - name: NodeResourcesFit
        args: {ignoredResources: [nvidia.com/gpumem, nvidia.com/gpumem-percentage, nvidia.com/gpucores]}
extenders:
  - urlPrefix: http://%s
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    bindVerb: bind
    weight: 20
    nodeCacheCapable: true
    httpTimeout: 30s
`

const extenderConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint: {enabled: [{name: GPUAware, weight: 20}, {name: CostOptimized, weight: 5}]}
`

// TestAStockSchedulerPlacesPodsAsTheExtenderSays runs the real commands on a real API server.
//
//nolint:tparallel // the parts follow each other on one control plane
func TestAStockSchedulerPlacesPodsAsTheExtenderSays(t *testing.T) {
	t.Parallel()
	box := box.Start(t, nodes, sandbox.Options{NoKubelet: true, NoScheduler: true})
	if _, err := sandbox.CreateObjects(t.Context(), box.Config, metav1.NamespaceSystem, os.DirFS("../../manifests"),
		"extender/rbac.yaml", "extender/policy.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"berth-extender", "berth-extender-binder"} {
		box.AwaitClusterRole(t, "system:serviceaccount:kube-system:berth-extender", role)
	}
	first := startExtender(t, box)
	first.awaitReady(t, box, "ok")
	startScheduler(t, box, first.address)

	t.Run("pods go where their GPUs are", func(t *testing.T) { placesAsThePluginsSay(t, box) })
	t.Run("pods are evicted only where that makes a place", func(t *testing.T) { evictsWhereThatHelps(t, box) })
	t.Run("HAMi's device plugin serves one pod after the other", func(t *testing.T) { bindsForHAMi(t, box) })
	t.Run("devices of claims are allocated by the scheduler", func(t *testing.T) { bindsWithClaims(t, box) })
	t.Run("the extender's image answers", func(t *testing.T) { answersFromItsImage(t, box) })

	// Another replica does not answer until the first gives the lease back. Then it knows of the shares.
	other := startExtender(t, box)
	other.awaitReady(t, box, "does not hold the lease kube-system/berth-extender")
	first.stop()
	<-first.ended
	if first.err != nil {
		t.Errorf("stopping the extender: %v", first.err)
	}
	other.awaitReady(t, box, "ok")
	said := filter(t, other.address, `{"Pod":{"metadata":{"annotations":{"alibabacloud.com/gpu-milli":"500","alibabacloud.com/gpu-count":"1"}}},"NodeNames":["shared-0"]}`)
	if !strings.Contains(said, `"NodeNames":[]`) {
		t.Errorf("a fifth share by the next replica: %s", said)
	}
}

// placesAsThePluginsSay fills the nodes of the pool main.
func placesAsThePluginsSay(t *testing.T, box *box.Box) {
	// 40 GiB are on no T4; where the first has taken half of a node, the second fills it up, which stock spreads.
	first := place(t, box, pod("first", 4, map[string]string{"berth.dev/gpu-memory-min": "40Gi"}))
	second := place(t, box, pod("second", 4, map[string]string{"berth.dev/gpu-memory-min": "40Gi"}))
	if !strings.HasPrefix(first, "a100-") || second != first {
		t.Errorf("pods of 4 GPUs went to %s and %s, want both on one a100", first, second)
	}
	if third := place(t, box, pod("third", 2, map[string]string{"berth.dev/gpu-models": "Tesla-T4"})); !strings.HasPrefix(third, "t4-") {
		t.Errorf("a pod for a T4 went to %s", third)
	}
	for i := range 4 {
		name := fmt.Sprintf("share-%d", i)
		node := place(t, box, pod(name, 0, map[string]string{"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "1"}))
		bound, err := box.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if device := bound.Annotations["alibabacloud.com/gpu-index"]; node != "shared-0" || device == "" {
			t.Errorf("share %d: node %s, device %q", i, node, device)
		}
	}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"a share too many": {pod("share-4", 0, map[string]string{"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "1"}), "GPU"},
		"a wrong value":    {pod("wrong", 1, map[string]string{"berth.dev/gpu-memory-min": "much"}), "berth.dev/gpu-memory-min"},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, box, tc.pod)
			awaitRefusal(t, box, tc.pod.Name, tc.want)
		})
	}
}

// running is an extender command that runs in this process until the test stops it or ends.
type running struct {
	address string
	stop    context.CancelFunc
	// ended is closed once the command has returned err.
	ended chan struct{}
	err   error
}

// startExtender runs the command with the rights that the manifests give to the extender.
func startExtender(t *testing.T, box *box.Box) *running {
	t.Helper()
	return runExtender(t, impersonating(t, box, "berth-extender"))
}

func runExtender(t *testing.T, kubeconfig string, args ...string) *running {
	t.Helper()
	e := &running{address: box.Port(t).Address(), ended: make(chan struct{})}
	cmd := newCommand()
	cmd.SetArgs(append([]string{"--config=" + write(t, "extender.yaml", fmt.Sprintf(extenderConfig, kubeconfig)), "--listen=" + e.address, "--bind"}, args...))
	cmd.SetOut(io.Discard)
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	go func() {
		defer close(e.ended)
		e.err = cmd.ExecuteContext(ctx)
	}()
	t.Cleanup(func() {
		e.stop()
		<-e.ended
	})
	return e
}

// awaitReady waits until the extender says something of its readiness.
func (e *running) awaitReady(t *testing.T, box *box.Box, want string) {
	t.Helper()
	awaitReady(t, box, e.address, want, func() error {
		select {
		case <-e.ended:
			return fmt.Errorf("the extender has ended: %w", e.err)
		default:
			return nil
		}
	})
}

// awaitReady waits until what listens at an address says something of its readiness. It fails as soon as ended, if given, returns
// an error.
func awaitReady(t *testing.T, box *box.Box, address, want string, ended func() error) {
	t.Helper()
	said := "nothing"
	defer func() {
		if t.Failed() {
			t.Logf("%s says %s", address, said)
		}
	}()
	box.Await(t, address+" to say "+want, func(ctx context.Context) (bool, error) {
		if ended != nil {
			if err := ended(); err != nil {
				return false, err
			}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			said = err.Error()
			return false, nil // not listening yet
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		said = string(body)
		return err == nil && strings.Contains(said, want), nil
	})
}

// impersonating is a kubeconfig with the rights of a service account in kube-system.
func impersonating(t *testing.T, box *box.Box, account string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(box.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:kube-system:" + account
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func startScheduler(t *testing.T, box *box.Box, extender string) {
	t.Helper()
	berth, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	scheduler := exec.Command(filepath.Join(filepath.Dir(berth), "berth-scheduler"),
		"--config="+write(t, "scheduler.yaml", fmt.Sprintf(stockWithExtender, box.Kubeconfig(), extender)), "--secure-port=0")
	scheduler.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	scheduler.Stdout, scheduler.Stderr = log, log
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = scheduler.Process.Kill()
		_ = scheduler.Wait()
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the scheduler's log:\n%s", said)
		}
	})
}

func pod(name string, gpus int64, annotations map[string]string) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	limits := v1.ResourceList{}
	if gpus > 0 {
		limits["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
		maps.Copy(requests, limits)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: annotations},
		Spec: v1.PodSpec{NodeSelector: map[string]string{"pool": "main"}, Containers: []v1.Container{
			{Name: "c", Image: "work:1", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}},
		}},
	}
}

func create(t *testing.T, box *box.Box, pod *v1.Pod) {
	t.Helper()
	// Without a controller manager the service account is not created.
	no := false
	pod.Spec.AutomountServiceAccountToken = &no
	if _, err := box.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// place creates a pod and returns the node that it gets.
func place(t *testing.T, box *box.Box, pod *v1.Pod) string {
	t.Helper()
	create(t, box, pod)
	return awaitNode(t, box, pod.Name)
}

// awaitNode returns the node of a pod once it has one.
func awaitNode(t *testing.T, box *box.Box, name string) (node string) {
	t.Helper()
	box.Await(t, "a node for "+name, func(ctx context.Context) (bool, error) {
		p, err := box.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		node = p.Spec.NodeName
		return node != "", nil
	})
	return node
}

// awaitRefusal waits until the scheduler says of a pod why it has no node.
func awaitRefusal(t *testing.T, box *box.Box, name, want string) {
	t.Helper()
	box.Await(t, "the refusal of "+name, func(ctx context.Context) (bool, error) {
		p, err := box.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && strings.Contains(c.Message, want)
		}), nil
	})
}

// filter asks the extender at an address which nodes pass, and returns its answer.
func filter(t *testing.T, address, request string) string {
	t.Helper()
	response, err := http.Post("http://"+address+"/filter", "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
