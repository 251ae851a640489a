package priceview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

func TestStatedPrice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations, labels map[string]string
		want                price.MicroDollars
		known               bool
		bad                 []string // keys
	}{
		"a node that states nothing has no price": {},
		"the annotation states it": {
			annotations: map[string]string{wellknown.PricePerHourKey: "3.06"}, want: 3_060_000, known: true},
		"the label of published examples has decimals": {labels: map[string]string{NodeCostPerHourLabel: "2.90"},
			want: 2_900_000, known: true},
		"thirty-five cents are not nothing": {labels: map[string]string{NodeCostPerHourLabel: "0.35"},
			want: 350_000, known: true},
		"the annotation counts before the label": {annotations: map[string]string{wellknown.PricePerHourKey: "1"},
			labels: map[string]string{NodeCostPerHourLabel: "2"}, want: price.Dollar, known: true},
		"a currency sign makes it unknown": {
			annotations: map[string]string{wellknown.PricePerHourKey: "$3.06"}, bad: []string{wellknown.PricePerHourKey}},
		"a bad annotation counts as absent": {annotations: map[string]string{wellknown.PricePerHourKey: "-1"},
			labels: map[string]string{NodeCostPerHourLabel: "2"}, want: 2 * price.Dollar, known: true,
			bad: []string{wellknown.PricePerHourKey}},
		"two bad values are both named": {annotations: map[string]string{wellknown.PricePerHourKey: ""},
			labels: map[string]string{NodeCostPerHourLabel: "cheap"}, bad: []string{wellknown.PricePerHourKey,
				NodeCostPerHourLabel}},
		"an annotation of that name on the wrong side": {labels: map[string]string{wellknown.PricePerHourKey: "3"}},
		"a price beyond all measure is not believed": {
			annotations: map[string]string{wellknown.PricePerHourKey: "99999999999999999999"},
			bad:         []string{wellknown.PricePerHourKey}},
		"a stated price of nothing is taken at its word": {annotations: map[string]string{wellknown.PricePerHourKey: "0"},
			want: 0, known: true},
		"an empty label is a bad value and not a zero": {labels: map[string]string{NodeCostPerHourLabel: ""},
			bad: []string{NodeCostPerHourLabel}},
		"a label behind a good annotation is not looked at": {annotations: map[string]string{wellknown.PricePerHourKey: "1"},
			labels: map[string]string{NodeCostPerHourLabel: "x"}, want: price.Dollar, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known, bad := StatedPrice(&v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations,
				Labels: tc.labels}})
			if got != tc.want || known != tc.known {
				t.Errorf("price is %s, known %t; want %s, known %t", got, known, tc.want, tc.known)
			}
			var keys []string
			for _, b := range bad {
				keys = append(keys, b.Key)
			}
			if diff := cmp.Diff(tc.bad, keys); diff != "" {
				t.Errorf("bad keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPricedRequests(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory, gpu string) v1.ResourceList {
		l := v1.ResourceList{}
		for name, value := range map[v1.ResourceName]string{v1.ResourceCPU: cpu, v1.ResourceMemory: memory,
			"nvidia.com/gpu": gpu} {
			if value != "" {
				l[name] = resource.MustParse(value)
			}
		}
		return l
	}
	pod := func(requests v1.ResourceList, annotations ...string) *v1.Pod {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}}}
		for i := 0; i < len(annotations); i += 2 {
			p.Annotations = map[string]string{annotations[i]: annotations[i+1]}
		}
		return p
	}
	node := func(labels map[string]string) *v1.Node {
		return &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Status:     v1.NodeStatus{Capacity: list("100", "1Ti", "9"), Allocatable: list("96", "512Gi", "8")},
		}
	}
	plain := node(nil)
	shared := node(map[string]string{wellknown.GPUModeKey: "shared", "nvidia.com/gpu.memory": "16384"})
	sliced := node(map[string]string{"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "4"})
	withInit := pod(list("1", "1Gi", ""))
	withInit.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: list("4", "512Mi", "")}}}
	keys := gpuview.DefaultKeys()
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		node *v1.Node
		want price.Capacity
		gpu  bool
	}{
		"what the pod asks for": {pod(list("8", "32Gi", "4")), plain,
			price.Capacity{MilliCPU: 8000, MemoryMiB: 32768, MilliGPU: 4000}, true},
		"a pod that asks for nothing still takes something": {pod(nil), plain, price.Capacity{MilliCPU: 100, MemoryMiB: 200},
			false},
		"what it says is nothing is nothing": {pod(list("0", "0", "")), plain, price.Capacity{}, false},
		"an init container that asks for more counts": {withInit, plain, price.Capacity{MilliCPU: 4000, MemoryMiB: 1024},
			false},
		"a part of a MiB is one": {pod(list("1m", "1", "")), plain,
			price.Capacity{MilliCPU: 1, MemoryMiB: 1}, false},
		"a share of a GPU": {pod(list("1", "1Gi", ""), "alibabacloud.com/gpu-milli", "460"),
			shared, price.Capacity{MilliCPU: 1000, MemoryMiB: 1024, MilliGPU: 460}, true},
		"a share by memory is one of the node's GPU": {pod(list("1", "1Gi", ""), "gpu-memory", "4096"), shared,
			price.Capacity{MilliCPU: 1000, MemoryMiB: 1024, MilliGPU: 250}, true},
		"a time slice is a part of a GPU": {pod(list("1", "1Gi", "1")), sliced,
			price.Capacity{MilliCPU: 1000, MemoryMiB: 1024, MilliGPU: 250}, true},
		"a request for GPUs that cannot be read is none": {pod(list("1", "1Gi", ""), "alibabacloud.com/gpu-milli", "many"),
			shared, price.Capacity{MilliCPU: 1000, MemoryMiB: 1024}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, n := ReadPod(&keys, tc.pod), ReadNode(&keys, tc.node)
			if diff := cmp.Diff(tc.want, n.Request(&p)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if p.WantsGPU() != tc.gpu {
				t.Errorf("wants a GPU: %t", p.WantsGPU())
			}
		})
	}

	for name, tc := range map[string]struct {
		node *v1.Node
		pod  *v1.Pod
		want price.Capacity
		free int64
	}{
		"whole GPUs": {plain, pod(list("6", "12Gi", "3")), price.Capacity{MilliCPU: 96_000, MemoryMiB: 524288,
			MilliGPU: 8000}, 5000},
		"shares": {shared, pod(list("6", "12Gi", ""), "alibabacloud.com/gpu-milli", "460"),
			price.Capacity{MilliCPU: 96_000, MemoryMiB: 524288, MilliGPU: 8000}, 7540},
		"eight time slices of two GPUs, one used": {sliced, pod(list("6", "12Gi", "1")),
			price.Capacity{MilliCPU: 96_000, MemoryMiB: 524288, MilliGPU: 2000}, 1750},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := ReadNode(&keys, tc.node)
			if diff := cmp.Diff(tc.want, n.Allocatable); diff != "" {
				t.Errorf("allocatable (-want +got):\n%s", diff)
			}
			info := framework.NewNodeInfo(tc.pod)
			info.SetNode(tc.node)
			if got := FreeMilliGPU(&keys, &n, info, nil); got != tc.free {
				t.Errorf("%d thousandths of a GPU are free, want %d", got, tc.free)
			}
			if diff := cmp.Diff(price.Capacity{MilliCPU: 90_000, MemoryMiB: 512000}, FreeHost(info)); diff != "" {
				t.Errorf("free on the host (-want +got):\n%s", diff)
			}
		})
	}
}
