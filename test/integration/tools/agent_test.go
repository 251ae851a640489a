package tools_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/nodeagent/nvidiasmi/nvidiasmitest"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/box"
)

// fourGPUsInPairs answers as nvidia-smi of four GPUs with links between 0 and 1, and between 2 and 3.
const fourGPUsInPairs = `case "$1" in
topo) printf '\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\t X \tNV12\tSYS\tSYS\nGPU1\tNV12\t X \tSYS\tSYS\nGPU2\tSYS\tSYS\t X \tNV12\nGPU3\tSYS\tSYS\tNV12\t X \n';;
*) for i in 0 1 2 3; do printf '%d, GPU-5d5ba0d%d-1c2d-4e5f-8a9b-9e3d8d2b8a7%d, NVIDIA A100 80GB PCIe, 81920, [N/A], [N/A]\n' $i $i $i; done;;
esac`

func uuidOf(i int) string { return fmt.Sprintf("GPU-5d5ba0d%d-1c2d-4e5f-8a9b-9e3d8d2b8a7%[1]d", i) }

// machine is a node of four GPUs: its kubelet's PodResources API, in which the test says which pod holds which device,
// and its nvidia-smi.
type machine struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
	*box.Box
	kubeconfig, socket, tool string

	mu        sync.Mutex
	held      map[string][]int
	unhealthy int
	// marks is how many marks the node has.
	marks int
}

// none stands for no device.
const none = -1

func (m *machine) List(context.Context,
	*podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer := &podresourcesv1.ListPodResourcesResponse{}
	for _, pod := range slices.Sorted(maps.Keys(m.held)) {
		devices := &podresourcesv1.ContainerDevices{ResourceName: "nvidia.com/gpu"}
		for _, i := range m.held[pod] {
			devices.DeviceIds = append(devices.DeviceIds, uuidOf(i))
		}
		answer.PodResources = append(answer.PodResources, &podresourcesv1.PodResources{Namespace: m.Namespace, Name: pod,
			Containers: []*podresourcesv1.ContainerResources{{Name: "c", Devices: []*podresourcesv1.ContainerDevices{devices}}}})
	}
	return answer, nil
}

func (m *machine) GetAllocatableResources(context.Context,
	*podresourcesv1.AllocatableResourcesRequest) (*podresourcesv1.AllocatableResourcesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	devices := &podresourcesv1.ContainerDevices{ResourceName: "nvidia.com/gpu"}
	for i := range 4 {
		if i != m.unhealthy {
			devices.DeviceIds = append(devices.DeviceIds, uuidOf(i))
		}
	}
	return &podresourcesv1.AllocatableResourcesResponse{Devices: []*podresourcesv1.ContainerDevices{devices}}, nil
}

// startMachine starts the kubelet's API and makes the files that an agent on the node needs: nvidia-smi, and a
// kubeconfig with the token of a pod of the shipped DaemonSet.
func startMachine(t *testing.T, shared *box.Box) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Only the number of its GPUs is known.
	part := shared.Part(t, "agent", `shapes: [{name: gpu, count: 1, allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "4"}}]`)
	m := &machine{Box: part, socket: filepath.Join(dir, "kubelet.sock"), tool: nvidiasmitest.Program(t, fourGPUsInPairs),
		held: map[string][]int{}, unhealthy: none}
	listener, err := net.Listen("unix", m.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresourcesv1.RegisterPodResourcesListerServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	installAgent(t, shared)
	m.kubeconfig = agentKubeconfig(t, shared, "gpu-0")
	return m
}

func (m *machine) startAgent(t *testing.T) *box.Process {
	t.Helper()
	return box.Command(t, "berth-node-agent", "--node-name=gpu-0", "--kubeconfig="+m.kubeconfig, "--pod-resources-socket="+
		m.socket, "--nvidia-smi="+m.tool,
		"--listen=", "--kubelet-interval=1s", "--gpu-interval=1s")
}

// published waits until the node says which of its GPUs are in use and, if any, which is not healthy.
func (m *machine) published(t *testing.T, inUse string, unhealthy int) {
	t.Helper()
	m.Await(t, fmt.Sprintf("gpus-in-use %q, unhealthy %d", inUse, unhealthy), func(ctx context.Context) (bool, error) {
		node, err := m.Client.CoreV1().Nodes().Get(ctx, "gpu-0", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		value, ok := node.Annotations[wellknown.GPUsInUseKey]
		devices := node.Annotations[wellknown.GPUDevicesKey]
		if unhealthy == none {
			return ok && value == inUse && devices != "" && !strings.Contains(devices, `"healthy":false`), nil
		}
		at := strings.Index(devices, fmt.Sprintf(`"index":%d,`, unhealthy))
		return ok && value == inUse && at >= 0 && strings.HasPrefix(devices[at+strings.Index(devices[at:], `"healthy"`):], `"healthy":false`), nil
	})
}

// mark gives the node a label that it has not had before. A scheduler that sees it has seen all that was written about
// the node until now.
func (m *machine) mark(t *testing.T) (label string) {
	t.Helper()
	m.marks++
	label = fmt.Sprintf("mark-%d", m.marks)
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:""}}}`, label)
	if _, err := m.Client.CoreV1().Nodes().Patch(t.Context(), "gpu-0", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return label
}

// submit creates a pod; one for two GPUs wants them linked. The scheduler reads nodes and pods by two streams: it finds
// a node for the pod only when it has seen what the test knows of the node.
func (m *machine) submit(t *testing.T, name string, gpus int64) {
	t.Helper()
	seen := map[string]string{m.mark(t): ""}
	list := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: "gpu-aware-scheduler", NodeSelector: seen,
		Containers: []corev1.Container{{Name: "c", Image: "work:1", Resources: corev1.ResourceRequirements{Requests: list,
			Limits: list}}},
	}}
	if gpus > 1 {
		pod.Annotations = map[string]string{wellknown.GPUInterconnectKey: "required"}
	}
	m.Create(t, pod)
}

// bound waits until a pod has the node, and gives it these devices, as the kubelet would.
func (m *machine) bound(t *testing.T, name string, devices ...int) {
	t.Helper()
	m.Bound(t, name, "gpu-0")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[name] = devices
}

// refused waits until a pod is said to find no linked GPUs.
func (m *machine) refused(t *testing.T, name string) {
	t.Helper()
	m.Pending(t, name, "without 2 NVLink-connected free GPUs")
}

// remove ends pods and takes their devices back.
func (m *machine) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		m.Remove(t, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.held, name)
	}
}

// breaks makes a device unhealthy and the one before healthy again, which changes what the kubelet offers.
func (m *machine) breaks(t *testing.T, device int) {
	t.Helper()
	m.mu.Lock()
	m.unhealthy = device
	m.mu.Unlock()
	offered := 4
	if device != none {
		offered--
	}
	patch := fmt.Sprintf(`{"status":{"allocatable":{"nvidia.com/gpu":"%d"}}}`, offered)
	_, err := m.Client.CoreV1().Nodes().Patch(t.Context(), "gpu-0", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// reports is the kubelet's regular report of the node's state, at that time.
func (m *machine) reports(t *testing.T, at time.Time) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, at.UTC().Format(time.RFC3339))
	_, err := m.Client.CoreV1().Nodes().Patch(t.Context(), "gpu-0", types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// schedulerFollowsAgent runs the agent with the rights of its manifests beside the built scheduler.
// Which pod holds which GPU is for the kubelet to choose: here the test says it.
func schedulerFollowsAgent(t *testing.T, shared *box.Box) {
	m := startMachine(t, shared)
	agent := m.startAgent(t)
	m.published(t, "", none)

	t.Run("two GPUs are free, but not two that are linked", func(t *testing.T) {
		m.submit(t, "left", 1)
		m.bound(t, "left", 0)
		m.submit(t, "right", 1)
		m.bound(t, "right", 2)
		m.published(t, "0,2", none)
		m.submit(t, "pair", 2)
		m.refused(t, "pair")
	})

	t.Run("a GPU that becomes free makes a linked pair", func(t *testing.T) {
		m.remove(t, "right")
		m.bound(t, "pair", 2, 3)
		m.published(t, "0,2,3", none)
	})

	t.Run("the list says which GPU the kubelet no longer offers", func(t *testing.T) {
		m.remove(t, "pair")
		m.published(t, "0", none)
		// By number alone it would be the last one, and the linked pair 2 and 3 broken.
		m.breaks(t, 1)
		m.published(t, "0", 1)
		m.submit(t, "around", 2)
		m.bound(t, "around", 2, 3)
		m.remove(t, "around")
		m.published(t, "0", 1)
	})

	t.Run("a GPU that falls ill breaks a pair until it is well again", func(t *testing.T) {
		m.breaks(t, 3)
		m.published(t, "0", 3)
		m.submit(t, "after", 2)
		m.refused(t, "after")
		m.breaks(t, none)
		m.bound(t, "after", 2, 3)
		m.published(t, "0,2,3", none)
	})

	t.Run("what an agent that is gone wrote counts for a while", func(t *testing.T) {
		if err := agent.Stop(); err != nil {
			t.Errorf("stopping the agent: %v", err)
		}
		// The kubelet gives GPUs 0 and 1 out. The annotation says 0, 2 and 3, and the scheduler takes two of them.
		m.remove(t, "after")
		m.submit(t, "unseen", 1)
		m.bound(t, "unseen", 1)
		m.submit(t, "misled", 2)
		m.refused(t, "misled")
	})

	t.Run("when it is old the best connected GPUs are taken to be in use", func(t *testing.T) {
		m.reports(t, time.Now().Add(gpuview.InUseLasts+time.Minute))
		// A report of the kubelet that changes nothing else wakes no pod: one that comes later sees it at once.
		m.remove(t, "misled")
		m.submit(t, "rightly", 2)
		m.bound(t, "rightly", 2, 3)
	})

	t.Run("the next agent puts it right", func(t *testing.T) {
		m.reports(t, time.Now())
		m.startAgent(t)
		m.published(t, "0,1,2,3", none)
		m.remove(t, "rightly", "unseen")
		m.submit(t, "other", 1)
		m.bound(t, "other", 2)
		m.published(t, "0,2", none)
		m.submit(t, "last", 2)
		m.refused(t, "last")
	})
}
