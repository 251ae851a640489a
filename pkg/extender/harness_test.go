package extender

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// plain is a profile with both plugins and nothing said.
const plain = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint: {enabled: [{name: GPUAware, weight: 20}, {name: CostOptimized, weight: 20}]}
`

// harness is an extender on an API in memory.
type harness struct {
	*Extender
	api *memapi.Server
}

func load(t testing.TB, config string) *schedulerconfig.Configuration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	configuration, err := schedulerconfig.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return configuration
}

// newHarness starts an extender, which has seen these objects when it returns.
func newHarness(t testing.TB, objects ...runtime.Object) *harness {
	t.Helper()
	h := &harness{api: memapi.New()}
	for _, o := range objects {
		h.add(t, o)
	}
	configuration := load(t, plain)
	profile, err := configuration.Profile("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.Extender, err = New(ctx, configuration.Component, profile, h.api.RESTConfig())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		h.Close()
	})
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

// objects are nodes and pods as newHarness takes them.
func objects(nodes []*v1.Node, pods []*v1.Pod) []runtime.Object {
	list := make([]runtime.Object, 0, len(nodes)+len(pods))
	for _, node := range nodes {
		list = append(list, node)
	}
	for _, pod := range pods {
		list = append(list, pod)
	}
	return list
}

func (h *harness) add(t testing.TB, object runtime.Object) {
	t.Helper()
	if err := h.api.Create(object.DeepCopyObject()); err != nil {
		t.Fatal(err)
	}
}

// serve serves the extender over HTTP until the test ends.
func (h *harness) serve(t *testing.T, s Serving) string {
	t.Helper()
	s.Address = "127.0.0.1:0"
	if s.Within == 0 {
		s.Within = time.Minute
	}
	server, err := NewServer(h.Extender, s)
	if err != nil {
		t.Fatal(err)
	}
	run(t, server)
	return server.Addr().(*net.TCPAddr).String()
}

// run runs a server until the test ends.
func run(t *testing.T, server *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
}

// gpuNode makes a node of n GPUs with these further labels.
func gpuNode(name string, n int, labels map[string]string) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": strconv.Itoa(n),
			"nvidia.com/gpu.memory": "81920",
		}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("512Gi"),
			v1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": *resource.NewQuantity(int64(n), resource.DecimalSI),
		}},
	}
	for key, value := range labels {
		node.Labels[key] = value
	}
	return node
}

// shared makes a node that shares its GPUs.
func shared(name string, n int) *v1.Node {
	return gpuNode(name, n, map[string]string{"berth.dev/gpu-mode": "shared"})
}

// newPod makes a pod that asks for GPUs, on a node unless that is empty.
func newPod(name, node string, gpus int64, annotations map[string]string) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	if gpus > 0 {
		requests["nvidia.com/gpu"] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Annotations: annotations},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: "default-scheduler", Containers: []v1.Container{
			{Name: "c", Image: "work:1", Resources: v1.ResourceRequirements{Requests: requests, Limits: v1.ResourceList{}}},
		}},
	}
}

// share is a pod that asks for a part of one GPU.
func share(name, milli string) *v1.Pod {
	return newPod(name, "", 0, map[string]string{"alibabacloud.com/gpu-milli": milli, "alibabacloud.com/gpu-count": "1"})
}
