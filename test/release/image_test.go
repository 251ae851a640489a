package release_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

func TestTheImageOfTheNodeAgentAddsOneFileAndLicensesToItsBase(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	if got, want := b.files(t,
		b.container(t, "node-agent")), "[/berth-node-agent /licenses/LICENSE /licenses/THIRD_PARTY_LICENSES]"; got != want {
		t.Errorf("files of the image on an empty base: %s, want %s", got, want)
	}
}

// nodesForImages are for what the images of the scheduler and of the extender are asked.
const nodesForImages = `
- {name: image, count: 1, labels: {for: image}, taints: [{key: for, value: image, effect: NoSchedule}], allocatable: {cpu: "8", memory: 16Gi}}
- {name: a100, count: 1, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: "81920", nvidia.com/gpu.count: "8"}, taints: [{key: for, value: image, effect: NoSchedule}], allocatable: {cpu: "96", memory: 512Gi, nvidia.com/gpu: "8"}}
- {name: t4, count: 1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.memory: "15360", nvidia.com/gpu.count: "4"}, taints: [{key: for, value: image, effect: NoSchedule}], allocatable: {cpu: "96", memory: 512Gi, nvidia.com/gpu: "4"}}
`

// testImageOfTheScheduler has the image bind a pod, as a scheduler of its own.
func testImageOfTheScheduler(t *testing.T, w *guarded) {
	b := newBuilder(t)
	container := b.container(t, "scheduler")
	b.check(t, container, "scheduler")
	// A time zone proves that the image has them; the system's own are not in it.
	config := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: /config/kubeconfig}
profiles:
  - schedulerName: in-an-image
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: CostOptimized, weight: 20}]}
    pluginConfig:
      - name: CostOptimized
        args: {windows: [{name: night, from: "22:00", to: "06:00", timeZone: Europe/Berlin}]}
`
	kubeconfig, err := os.ReadFile(w.Kubeconfig())
	require.NoError(t, err)
	b.start(t, container, map[string][]byte{"kubeconfig": kubeconfig, "config.yaml": []byte(config)},
		"/berth-scheduler", "--config=/config/config.yaml", "--secure-port=0")
	pod := podWith(nil)
	pod.Spec.SchedulerName, pod.Spec.NodeSelector = "in-an-image", map[string]string{"for": "image"}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "for", Operator: corev1.TolerationOpExists}}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	created, err := w.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	w.Await(t, "the scheduler of the image to bind a pod", func(ctx context.Context) (bool, error) {
		got, err := w.Client.CoreV1().Pods("default").Get(ctx, created.Name, metav1.GetOptions{})
		return err == nil && got.Spec.NodeName == "image-0", err
	})
}

// testImageOfTheExtender asks the image without a scheduler.
func testImageOfTheExtender(t *testing.T, w *guarded) {
	b := newBuilder(t)
	container := b.container(t, "extender")
	b.check(t, container, "extender")
	if _, err := sandbox.CreateFiles(t.Context(), w.Config, "default", os.DirFS(manifests(t)),
		"extender/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	w.AwaitClusterRole(t, "system:serviceaccount:kube-system:berth-extender", "berth-extender")
	kubeconfig, err := os.ReadFile(w.KubeconfigOf(t, "berth-extender"))
	require.NoError(t, err)
	config := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /config/kubeconfig}
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint: {enabled: [{name: GPUAware, weight: 20}, {name: CostOptimized, weight: 5}]}
`
	address := box.Port(t).Address()
	b.start(t, container, map[string][]byte{"kubeconfig": kubeconfig, "config.yaml": []byte(config)},
		"/berth-extender", "--config=/config/config.yaml", "--listen="+address)
	box.AwaitAnswer(t, "http://"+address+"/readyz", "ok", nil)
	response, err := http.Post("http://"+address+"/filter", "application/json", strings.NewReader(
		`{"Pod":{"metadata":{"annotations":{"berth.dev/gpu-models":"Tesla-T4"}},`+
			`"spec":{"containers":[{"resources":{"requests":{"nvidia.com/gpu":"2"}}}]}},"NodeNames":["a100-0","t4-0"]}`))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if !strings.Contains(string(said), `"NodeNames":["t4-0"]`) || !strings.Contains(string(said), "NVIDIA-A100-SXM4-80GB") {
		t.Errorf("the extender of the image says %s", said)
	}
}
