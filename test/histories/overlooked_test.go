package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/test/harness/require"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

func TestWhatFitsDoesNotWait(t *testing.T) {
	t.Parallel()
	plain := history.Node{Name: "n", CPUs: 4, MemGiB: 8, Zone: "a"}
	whole := history.Node{Name: "w", CPUs: 4, MemGiB: 8, Zone: "b", GPUs: 2, Model: "m", Mode: history.WholeMode}
	shared := history.Node{Name: "s", CPUs: 4, MemGiB: 8, Zone: "a", GPUs: 1, Model: "m", Mode: history.SharedMode}
	claimed := history.Node{Name: "d", CPUs: 4, MemGiB: 8, Zone: "a", GPUs: 1, Model: "m", Mode: history.ClaimedMode}
	disks := history.Node{Name: "v", CPUs: 4, MemGiB: 8, Zone: "a", Volumes: 1}
	small := history.Node{Name: "l", CPUs: 1, MemGiB: 8, Zone: "b"}
	nodesEven, zonesEven := &history.Spread{Of: "s", MaxSkew: 1}, &history.Spread{Of: "s", Zones: true, MaxSkew: 1}
	zonesUneven := &history.Spread{Of: "s", Zones: true, MaxSkew: 2}
	two, roles := &history.Gang{Name: "g", MinMember: 2}, &history.Gang{Name: "g", MinMember: 2,
		MinByRole: "leader=1,worker=1"}
	for name, test := range map[string]struct {
		nodes []history.Node
		gang  *history.Gang
		// on are pods that have the first node already.
		on, wait []history.Pod
		closed   bool
		// failing is set if one GPU of the first node fails.
		failing bool
		// says is the reason that the last pod gives.
		says string
		want string
	}{
		"no pod waits": {nodes: []history.Node{plain}},
		"a pod that fits": {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", MilliCPU: 4000}},
			want: overlooked},
		"a pod that is too large":  {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", MilliCPU: 4001}}},
		"a cordoned node":          {nodes: []history.Node{plain}, closed: true, wait: []history.Pod{{Name: "a"}}},
		"a gate":                   {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", Gated: true}}},
		"another zone":             {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", Zone: "b"}}},
		"a volume in another zone": {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", VolumeZone: "b"}}},
		"whole GPUs": {nodes: []history.Node{whole}, wait: []history.Pod{{Name: "a", GPUs: 2}},
			want: overlooked},
		"GPUs of another model": {nodes: []history.Node{whole},
			wait: []history.Pod{{Name: "a", GPUs: 2, Models: []string{"other"}}}},
		"a share where none is given": {nodes: []history.Node{whole}, wait: []history.Pod{{Name: "a", MilliGPU: 100}}},
		"a share": {nodes: []history.Node{shared}, wait: []history.Pod{{Name: "a", MilliGPU: 100}},
			want: overlooked},
		"a claim": {nodes: []history.Node{claimed}, wait: []history.Pod{{Name: "a", ClaimedGPUs: 1}},
			want: overlooked},
		"the port of the node": {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", Port: true}},
			want: overlooked},
		"a port that is taken": {nodes: []history.Node{plain}, on: []history.Pod{{Name: "a", Port: true}},
			wait: []history.Pod{{Name: "b", Port: true}}},
		"pods that must be apart": {nodes: []history.Node{plain}, on: []history.Pod{{Name: "a", Apart: true}},
			wait: []history.Pod{{Name: "b", Apart: true}}},
		"a volume of the node": {nodes: []history.Node{disks}, wait: []history.Pod{{Name: "a", LocalVolume: true}},
			want: overlooked},
		"a node without volumes": {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", LocalVolume: true}}},
		"a gang for one port": {nodes: []history.Node{plain}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", Port: true}, {Name: "b", Gang: "g", Port: true}}},
		"a gang for one volume": {nodes: []history.Node{disks}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", LocalVolume: true}, {Name: "b", Gang: "g", LocalVolume: true}}},
		"a gang that wants to be in one zone": {nodes: []history.Node{plain, whole}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", Near: true, MilliCPU: 4000},
				{Name: "b", Gang: "g", Near: true, MilliCPU: 4000}}},
		"a gang of odd members that wants to be in one zone": {nodes: []history.Node{plain}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", Near: true, MilliCPU: 1000},
				{Name: "b", Gang: "g", Near: true, MilliCPU: 2000}}},
		"a gang of like members that wants to be in one zone": {nodes: []history.Node{plain}, gang: two, want: overlooked,
			wait: []history.Pod{{Name: "a", Gang: "g", Near: true, MilliCPU: 1000},
				{Name: "b", Gang: "g", Near: true, MilliCPU: 1000}}},
		"a pod that says that its room is kept for a gang that waits": {nodes: []history.Node{plain}, gang: two,
			says: "1 node(s) whose free capacity is kept for gang histories/g.",
			wait: []history.Pod{{Name: "a", Gang: "g", MilliCPU: 4000}, {Name: "b", Gang: "g", MilliCPU: 4000},
				{Name: "c", MilliCPU: 4000}}},
		"a pod that says that its room is kept for a gang that does not wait": {nodes: []history.Node{plain}, gang: two,
			want: overlooked,
			says: "1 node(s) whose free capacity is kept for gang histories/g.", wait: []history.Pod{{Name: "a", Gang: "g"},
				{Name: "c"}}},
		"a pod that is spread": {nodes: []history.Node{plain, whole},
			on: []history.Pod{{Name: "a", Spread: nodesEven}}, wait: []history.Pod{{Name: "b", Spread: nodesEven}},
			want: overlooked},
		"a pod that has more siblings on the node": {nodes: []history.Node{plain, small},
			on:   []history.Pod{{Name: "a", Spread: nodesEven}},
			wait: []history.Pod{{Name: "b", Spread: nodesEven, MilliCPU: 2000}}},
		"a pod that has more siblings in the zone": {nodes: []history.Node{plain, shared, small},
			on:   []history.Pod{{Name: "a", Spread: zonesEven}},
			wait: []history.Pod{{Name: "b", Spread: zonesEven, MilliCPU: 2000}}},
		"a pod that may have more siblings in the zone": {nodes: []history.Node{plain, shared, small},
			on: []history.Pod{{Name: "a", Spread: zonesUneven}}, want: overlooked,
			wait: []history.Pod{{Name: "b", Spread: zonesUneven, MilliCPU: 2000}}},
		"a pod that may not go to the empty zone": {nodes: []history.Node{plain, small},
			on: []history.Pod{{Name: "a", Spread: zonesEven}}, want: overlooked,
			wait: []history.Pod{{Name: "b", Spread: zonesEven, Zone: "a"}}},
		"a gang that is spread": {nodes: []history.Node{plain, whole}, gang: two, want: overlooked,
			wait: []history.Pod{{Name: "a", Gang: "g", Spread: zonesEven}, {Name: "b", Gang: "g", Spread: zonesEven}}},
		"a gang with too many members in one zone": {nodes: []history.Node{plain, small}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", Spread: zonesEven, MilliCPU: 2000},
				{Name: "b", Gang: "g", Spread: zonesEven, MilliCPU: 2000}}},
		"a gang whose largest member has to come before the last small one": {nodes: []history.Node{plain, small},
			gang: &history.Gang{Name: "g", MinMember: 3}, want: overlooked,
			wait: []history.Pod{{Name: "a", Gang: "g", Spread: zonesEven, VolumeZone: "a"},
				{Name: "b", Gang: "g", Spread: zonesEven, VolumeZone: "a"},
				{Name: "c", Gang: "g", Spread: zonesEven, VolumeZone: "b", MilliCPU: 500}}},
		"less important pods that are spread, too": {nodes: []history.Node{plain, small},
			on:   []history.Pod{{Name: "a", Spread: nodesEven, MilliCPU: 4000}},
			wait: []history.Pod{{Name: "b", Spread: nodesEven, MilliCPU: 4000, Priority: 1}}},
		"too large a claim": {nodes: []history.Node{claimed},
			wait: []history.Pod{{Name: "a", ClaimedGPUs: 2}}},
		"a gang that fits": {nodes: []history.Node{plain}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", MilliCPU: 2000}, {Name: "b", Gang: "g", MilliCPU: 2000}},
			want: overlooked},
		"a node with a GPU that fails": {nodes: []history.Node{whole}, failing: true,
			wait: []history.Pod{{Name: "a", GPUs: 1}}, want: overlooked},
		"a gang, and a node with a GPU that fails": {nodes: []history.Node{whole}, failing: true, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g"}, {Name: "b", Gang: "g"}}},
		"a gang with one member that fits": {nodes: []history.Node{plain}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g", MilliCPU: 2000}, {Name: "b", Gang: "g", MilliCPU: 3000}}},
		"a gang with two members of three that fit": {nodes: []history.Node{plain}, gang: two, want: overlooked,
			wait: []history.Pod{{Name: "a", Gang: "g", MilliCPU: 5000}, {Name: "b", Gang: "g", MilliCPU: 2000},
				{Name: "c", Gang: "g", MilliCPU: 2000}}},
		"a gang whose leader does not fit": {nodes: []history.Node{plain}, gang: roles, wait: []history.Pod{
			{Name: "a", Gang: "g", Role: "leader", MilliCPU: 5000}, {Name: "b", Gang: "g", Role: "worker"},
			{Name: "c", Gang: "g", Role: "worker"}}},
		"a gang without its PodGroup": {nodes: []history.Node{plain}, wait: []history.Pod{{Name: "a", Gang: "g"},
			{Name: "b", Gang: "g"}}},
		"a gang that is not complete": {nodes: []history.Node{plain}, gang: two,
			wait: []history.Pod{{Name: "a", Gang: "g"}}},
		"a pod of the same importance": {nodes: []history.Node{plain}, on: []history.Pod{{Name: "a", MilliCPU: 4000}},
			wait: []history.Pod{{Name: "b", MilliCPU: 4000}}},
		"a less important pod": {nodes: []history.Node{plain}, on: []history.Pod{{Name: "a", MilliCPU: 4000}},
			wait: []history.Pod{{Name: "b", MilliCPU: 4000, Priority: 1}}, want: unhelped},
		"a less important pod that is guarded": {nodes: []history.Node{plain},
			on:   []history.Pod{{Name: "a", MilliCPU: 4000, Guarded: true}},
			wait: []history.Pod{{Name: "b", MilliCPU: 4000, Priority: 1}}},
		"a gang with one member that is more important": {nodes: []history.Node{plain}, gang: two,
			wait: []history.Pod{{Name: "c", MilliCPU: 3000, Priority: 1}},
			on:   []history.Pod{{Name: "a", Gang: "g", MilliCPU: 2000}, {Name: "b", Gang: "g", MilliCPU: 2000, Priority: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{api: simulation.NewWorld().API, weather: newWeather(&history.History{}), checker: invariants.New(0),
				past: past{made: map[string]*history.Pod{}}}
			w.api.Observe = func(e memapi.Event) { w.checker.Observe(watch.EventType(e.Type), e.Object, e.Old) }
			var objects []runtime.Object
			for i := range test.nodes {
				objects = append(objects, test.nodes[i].Objects()...)
			}
			first := objects[0].(*v1.Node)
			first.Spec.Unschedulable = test.closed
			if test.failing {
				first.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("1")
			}
			if test.gang != nil {
				objects = append(objects, test.gang.Object())
			}
			for i := range test.on {
				made := test.on[i].Objects()
				made[len(made)-1].(*v1.Pod).Spec.NodeName = test.nodes[0].Name
				objects = append(objects, made...)
			}
			for i := range test.wait {
				w.made[test.wait[i].Name] = &test.wait[i]
				objects = append(objects, test.wait[i].Objects()...)
			}
			if test.says != "" {
				objects[len(objects)-1].(*v1.Pod).Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled,
					Status: v1.ConditionFalse, Message: test.says}}
			}
			require.NoError(t, w.create(objects...))
			got, fault := "", w.overlooks()
			if fault != nil {
				got = fault.Kind
			}
			if got != test.want {
				t.Errorf("fault %v, want %q", fault, test.want)
			}
		})
	}
}
