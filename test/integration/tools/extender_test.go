package tools_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// The nodes of each pool are for one of the scenarios of extenders.
const extenderNodes = `shapes:
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
- name: asked
  count: 1
  labels: {pool: asked, nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: "81920", nvidia.com/gpu.count: "8"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
- name: claims
  count: 1
  labels: {pool: claims}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110"}
`

// The stock profile of a scheduler without a plugin of ours, with the extender as its filter and judge.
const stockWithExtender = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q}
podMaxBackoffSeconds: 1
profiles:
  - schedulerName: default-scheduler
extenders:
  - urlPrefix: http://%s
    filterVerb: filter
    prioritizeVerb: prioritize
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

// placesAsTheExtenderSays runs the real commands on a real API server, with the rights that the manifests give to the
// extender.
func placesAsTheExtenderSays(t *testing.T, shared *box.Box) {
	if _, err := sandbox.CreateFiles(t.Context(), shared.Config, metav1.NamespaceSystem, os.DirFS(manifests(t)),
		"extender/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	shared.AwaitClusterRole(t, "system:serviceaccount:kube-system:berth-extender", "berth-extender")
	e := startExtender(t, shared.KubeconfigOf(t, "berth-extender"))
	e.awaitReady(t, "ok")
	config := fmt.Sprintf(stockWithExtender, shared.Kubeconfig(), e.address)
	box.Command(t, "berth-scheduler", "--config="+write(t, "scheduler.yaml", config), "--secure-port=0")

	t.Run("pods go where their GPUs are", func(t *testing.T) { placesAsThePluginsSay(t, shared) })
	t.Run("devices of claims are allocated by the scheduler", func(t *testing.T) { bindsWithClaims(t, shared) })
}

// placesAsThePluginsSay fills the nodes of the pool main.
func placesAsThePluginsSay(t *testing.T, shared *box.Box) {
	// 40 GiB are on no T4; where the first has taken half of a node, the second fills it up, which stock spreads.
	first := place(t, shared, gpuPod("first", 4, map[string]string{"berth.dev/gpu-memory-min": "40Gi"}))
	second := place(t, shared, gpuPod("second", 4, map[string]string{"berth.dev/gpu-memory-min": "40Gi"}))
	if !strings.HasPrefix(first, "a100-") || second != first {
		t.Errorf("pods of 4 GPUs went to %s and %s, want both on one a100", first, second)
	}
	if third := place(t, shared,
		gpuPod("third", 2, map[string]string{"berth.dev/gpu-models": "Tesla-T4"})); !strings.HasPrefix(third, "t4-") {
		t.Errorf("a pod for a T4 went to %s", third)
	}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want string
	}{
		"a share of a GPU": {gpuPod("share", 0, map[string]string{"alibabacloud.com/gpu-milli": "500",
			"alibabacloud.com/gpu-count": "1"}), "only berth-scheduler assigns"},
		"a wrong value": {gpuPod("wrong", 1, map[string]string{"berth.dev/gpu-memory-min": "much"}),
			"berth.dev/gpu-memory-min"},
	} {
		t.Run(name, func(t *testing.T) {
			shared.Create(t, tc.pod)
			shared.Pending(t, tc.pod.Name, tc.want)
		})
	}
}

// extender is a process of berth-extender.
type extender struct {
	*box.Process
	address string
}

func startExtender(t *testing.T, kubeconfig string) *extender {
	t.Helper()
	address := box.Port(t).Address()
	config := write(t, "extender.yaml", fmt.Sprintf(extenderConfig, kubeconfig))
	return &extender{box.Command(t, "berth-extender", "--config="+config, "--listen="+address), address}
}

// awaitReady waits until the extender says something of its readiness.
func (e *extender) awaitReady(t *testing.T, want string) {
	t.Helper()
	box.AwaitAnswer(t, "http://"+e.address+"/readyz", want, e.Running)
}

// filter asks the extender which nodes pass, and returns its answer.
func (e *extender) filter(t *testing.T, request string) string {
	t.Helper()
	response, err := http.Post("http://"+e.address+"/filter", "application/json", strings.NewReader(request))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(said)
}

// gpuPod makes a pod for the pool main that asks for GPUs.
func gpuPod(name string, gpus int64, annotations map[string]string) *v1.Pod {
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

// place creates a pod and returns the node that it gets.
func place(t *testing.T, shared *box.Box, pod *v1.Pod) string {
	t.Helper()
	shared.Create(t, pod)
	return shared.Bound(t, pod.Name, "").Spec.NodeName
}
