package gpuaware

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// BenchmarkSiblings looks for the siblings of one pod of a Job among 40,000 pods on 5,000 nodes, some of them in NVLink
// domains that span nodes.
func BenchmarkSiblings(b *testing.B) {
	var objects []runtime.Object
	for n := range 5000 {
		name := fmt.Sprint("n", n)
		objects = append(objects, gpuNodeObject(name, 8, "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.clique",
			fmt.Sprint("c.", n/18)))
		for p := range 8 {
			pod := podObject(fmt.Sprint(name, "-", p), strs{"nvidia.com/gpu": "1"}, nil)
			job := fmt.Sprint("job-", (n*8+p)/64)
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job),
				Controller: ptr.To(true)}}
			pod.Spec.NodeName = name
			objects = append(objects, pod)
		}
	}
	h := newHarness(b, alone(defaultArgs()), objects...)
	if err := h.Cache.UpdateSnapshot(h.logger, h.Snapshot); err != nil {
		b.Fatal(err)
	}
	pod := podObject("one-more", strs{"nvidia.com/gpu": "1"}, nil)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job-7", UID: "job-7",
		Controller: ptr.To(true)}}
	if _, err := h.plugin.read(h.ctx, pod); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.plugin.read(h.ctx, pod); err != nil {
			b.Fatal(err)
		}
	}
}
