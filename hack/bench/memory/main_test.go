package main

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
)

func TestFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, wantErr string
		change        func(nodes, pods, wave *int)
	}{
		{"a cluster that is too small", "--nodes: 9 is not allowed", func(nodes, pods, wave *int) { *nodes = 9 }},
		{"a wave for which GPUs could lack", "--wave: 201 is not allowed; want 1 to twice the nodes (200)",
			func(nodes, pods, wave *int) { *wave = 201 }},
		{"more pods than run on the nodes",
			"--pods: 1051 is not allowed; want the wave and at most 10 pods a node besides (50 to 1050)",
			func(nodes, pods, wave *int) { *pods = 1051 }},
		{"fewer pods than the wave has", "--pods: 49 is not allowed", func(nodes, pods, wave *int) { *pods = 49 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			nodes, pods, wave := 100, 1050, 50
			if err := check(nodes, pods, wave); err != nil {
				t.Fatalf("what is to be changed is refused already: %v", err)
			}
			tt.change(&nodes, &pods, &wave)
			if err := check(nodes, pods, wave); err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got error %v, want one with %q", err, tt.wantErr)
			}
		})
	}
}

// TestEveryPodFits adds up what runs on each node at the most, and leaves room for two pods of the wave on each.
func TestEveryPodFits(t *testing.T) {
	t.Parallel()
	const nodes = 50
	used := map[string]v1.ResourceList{}
	add := func(node string, pod *v1.Pod) {
		if used[node] == nil {
			used[node] = v1.ResourceList{}
		}
		for name, q := range pod.Spec.Containers[0].Resources.Requests {
			sum := used[node][name]
			sum.Add(q)
			used[node][name] = sum
		}
	}
	for i := range nodes * maxPerNode {
		pod := runningPod(i, nodes)
		add(pod.Spec.NodeName, pod)
	}
	if len(used) != nodes {
		t.Fatalf("pods run on %d nodes, want %d", len(used), nodes)
	}
	allocatable := map[v1.ResourceName]string{v1.ResourceCPU: "96", v1.ResourceMemory: "1100Gi", "nvidia.com/gpu": "8"}
	for node := range used {
		// The largest of the wave.
		add(node, wavePod("", 39_999, ""))
		add(node, wavePod("", 35_999, ""))
		for name, most := range allocatable {
			if sum := used[node][name]; sum.Cmp(resource.MustParse(most)) > 0 {
				t.Fatalf("pods on %s request %s of %s, want at most %s", node, sum.String(), name, most)
			}
		}
	}
}

func TestTableTellsWhatAPodTakes(t *testing.T) {
	t.Parallel()
	all := results{Nodes: 100, Pods: 2048, Wave: 1024, Runs: []run{
		{Contender: "stock", Start: live.Memory{HeapMiB: 10, ResidentMiB: 80}},
		{Contender: "stock", RunningPods: 1024, Start: live.Memory{HeapMiB: 13, ResidentMiB: 90},
			Placed: &live.Memory{HeapMiB: 18, ResidentMiB: 100, PeakResidentMiB: 123}},
	}}
	var out strings.Builder
	if err := writeTable(&out, &all); err != nil {
		t.Fatal(err)
	}
	// 3 MiB more for 1,024 pods, then 8 MiB more for 2,048.
	for _, want := range []string{"3.00", "4.00", "123", "100 nodes, 2048 pods; each scheduler placed 1024 of them"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table should have %q:\n%s", want, out.String())
		}
	}
}

func TestNoTwoPodsOfTheWaveAreAlike(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i := range 40_000 {
		requests := wavePod("", i, "").Spec.Containers[0].Resources.Requests
		key := requests.Cpu().String() + " " + requests.Memory().String()
		if other, ok := seen[key]; ok {
			t.Fatalf("pods %d and %d both request %s", other, i, key)
		}
		seen[key] = i
	}
}
