package extender

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
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

// newHarness starts an extender, which has seen these objects when it returns.
func newHarness(t testing.TB, all ...runtime.Object) *harness {
	t.Helper()
	h := &harness{api: memapi.New()}
	for _, o := range all {
		h.add(t, o)
	}
	configuration, err := schedulerconfig.Parse("plain", []byte(plain))
	require.NoError(t, err)
	profile, err := configuration.Profile("")
	require.NoError(t, err)
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
	require.NoError(t, h.Start(ctx))
	return h
}

func (h *harness) add(t testing.TB, object runtime.Object) {
	t.Helper()
	require.NoError(t, h.api.Create(object.DeepCopyObject()))
}

// serve serves the extender over HTTP until the test ends.
func (h *harness) serve(t *testing.T, s Serving) string {
	t.Helper()
	s.Address = "127.0.0.1:0"
	if s.Within == 0 {
		s.Within = time.Minute
	}
	server, err := NewServer(h.Extender, s)
	require.NoError(t, err)
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
func gpuNode(name string, n int, labels ...string) *v1.Node {
	node := objects.Node(name, "cpu", "64", "memory", "512Gi", "nvidia.com/gpu", strconv.Itoa(n)).
		Label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB").Label("nvidia.com/gpu.count", strconv.Itoa(n)).
		Label("nvidia.com/gpu.memory", "81920")
	return objects.Labelled(node, labels...)
}

// shared makes a node that shares its GPUs.
func shared(name string, n int) *v1.Node { return gpuNode(name, n, "berth.dev/gpu-mode", "shared") }

// newPod makes a pod that asks for GPUs, on a node unless that is empty.
func newPod(name, node string, gpus int, annotations map[string]string) *v1.Pod {
	asks := []string{"cpu", "1"}
	if gpus > 0 {
		asks = append(asks, "nvidia.com/gpu", strconv.Itoa(gpus))
	}
	return objects.Pod(name, asks...).Node(node).SchedulerName("default-scheduler").Annotations(annotations).Obj()
}

// share is a pod that asks for a part of one GPU.
func share(name, milli string) *v1.Pod {
	return newPod(name, "", 0, map[string]string{"alibabacloud.com/gpu-milli": milli, "alibabacloud.com/gpu-count": "1"})
}
