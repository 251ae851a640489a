package priceview

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/require"
)

type requests = map[string]string

func resources(amounts requests) v1.ResourceList {
	list := v1.ResourceList{}
	for name, q := range amounts {
		list[v1.ResourceName(name)] = resource.MustParse(q)
	}
	return list
}

// platformOf reads a node of a platform, as the documentation of the platform describes it.
func platformOf(t *testing.T, name string) *v1.Node {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "gpu", "gpuview", "testdata", "nodes", name+".yaml"))
	require.NoError(t, err)
	node := &v1.Node{}
	if err := yaml.UnmarshalStrict(data, node); err != nil {
		t.Fatalf("reading node %s: %v", name, err)
	}
	return node
}

func TestPricesCountEachGPUOnce(t *testing.T) {
	t.Parallel()
	keys := gpuview.DefaultKeys()
	twoMakers := platformOf(t, "bare-metal")
	twoMakers.Labels = nil
	twoMakers.Status.Allocatable = resources(requests{"cpu": "64", "nvidia.com/gpu": "4", "amd.com/gpu": "2"})
	for name, tc := range map[string]struct {
		node            *v1.Node
		requests        requests
		all, taken, end int64
	}{
		"slices under names of their own": {platformOf(t, "bare-metal"), requests{"nvidia.com/mig-3g.40gb": "1"}, 8000, 500,
			7500},
		"slices that are offered as GPUs": {platformOf(t, "gke-mig"), requests{"nvidia.com/gpu": "1"}, 1000, 142, 852},
		"whole GPUs beside slices":        {platformOf(t, "bare-metal"), requests{"nvidia.com/gpu": "2"}, 8000, 2000, 6000},
		"a GPU that eight containers share": {platformOf(t, "gke-time-shared-t4"), requests{"nvidia.com/gpu": "1"}, 1000, 125,
			875},
		"GPUs under two names": {twoMakers, requests{"amd.com/gpu": "1"}, 6000, 1000, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{Spec: v1.PodSpec{
				Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: resources(tc.requests)}}}}}
			offers, asked := ReadNode(&keys, tc.node), ReadPod(&keys, pod)
			info := framework.NewNodeInfo()
			info.SetNode(tc.node)
			before := FreeMilliGPU(&keys, &offers, info, nil)
			info.AddPod(pod)
			got := []int64{offers.Allocatable.MilliGPU, before, offers.Request(&asked).MilliGPU,
				FreeMilliGPU(&keys, &offers, info, nil)}
			if diff := cmp.Diff([]int64{tc.all, tc.all, tc.taken, tc.end}, got); diff != "" {
				t.Errorf("milli-GPU of the node, free, asked for, free with the pod (-want +got):\n%s", diff)
			}
		})
	}
}
