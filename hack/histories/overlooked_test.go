package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"berth.dev/berth/hack/invariants"
	"berth.dev/berth/pkg/simulation"
	"berth.dev/berth/pkg/simulation/memapi"
)

func TestWhatFitsDoesNotWait(t *testing.T) {
	t.Parallel()
	plain := Node{Name: "n", CPUs: 4, MemGiB: 8, Zone: "a"}
	whole := Node{Name: "w", CPUs: 4, MemGiB: 8, Zone: "b", GPUs: 2, Model: "m", Mode: wholeMode}
	shared := Node{Name: "s", CPUs: 4, MemGiB: 8, Zone: "a", GPUs: 1, Model: "m", Mode: sharedMode}
	claimed := Node{Name: "d", CPUs: 4, MemGiB: 8, Zone: "a", GPUs: 1, Model: "m", Mode: claimedMode}
	disks := Node{Name: "v", CPUs: 4, MemGiB: 8, Zone: "a", Volumes: 1}
	small := Node{Name: "l", CPUs: 1, MemGiB: 8, Zone: "b"}
	nodesEven, zonesEven := &Spread{Of: "s", MaxSkew: 1}, &Spread{Of: "s", Zones: true, MaxSkew: 1}
	zonesUneven := &Spread{Of: "s", Zones: true, MaxSkew: 2}
	two, roles := &Gang{Name: "g", MinMember: 2}, &Gang{Name: "g", MinMember: 2, MinByRole: "leader=1,worker=1"}
	for name, test := range map[string]struct {
		nodes []Node
		gang  *Gang
		// on are pods that have the first node already.
		on, wait []Pod
		closed   bool
		// says is the reason that the last pod gives.
		says string
		want string
	}{
		"nobody waits":                {nodes: []Node{plain}},
		"a pod that fits":             {nodes: []Node{plain}, wait: []Pod{{Name: "a", MilliCPU: 4000}}, want: overlooked},
		"a pod that is too large":     {nodes: []Node{plain}, wait: []Pod{{Name: "a", MilliCPU: 4001}}},
		"a cordoned node":             {nodes: []Node{plain}, closed: true, wait: []Pod{{Name: "a"}}},
		"a gate":                      {nodes: []Node{plain}, wait: []Pod{{Name: "a", Gated: true}}},
		"another zone":                {nodes: []Node{plain}, wait: []Pod{{Name: "a", Zone: "b"}}},
		"a volume in another zone":    {nodes: []Node{plain}, wait: []Pod{{Name: "a", VolumeZone: "b"}}},
		"whole GPUs":                  {nodes: []Node{whole}, wait: []Pod{{Name: "a", GPUs: 2}}, want: overlooked},
		"GPUs of another model":       {nodes: []Node{whole}, wait: []Pod{{Name: "a", GPUs: 2, Models: []string{"other"}}}},
		"a share where none is given": {nodes: []Node{whole}, wait: []Pod{{Name: "a", MilliGPU: 100}}},
		"a share":                     {nodes: []Node{shared}, wait: []Pod{{Name: "a", MilliGPU: 100}}, want: overlooked},
		"a claim":                     {nodes: []Node{claimed}, wait: []Pod{{Name: "a", ClaimedGPUs: 1}}, want: overlooked},
		"the port of the node":        {nodes: []Node{plain}, wait: []Pod{{Name: "a", Port: true}}, want: overlooked},
		"a port that is taken":        {nodes: []Node{plain}, on: []Pod{{Name: "a", Port: true}}, wait: []Pod{{Name: "b", Port: true}}},
		"pods that must be apart":     {nodes: []Node{plain}, on: []Pod{{Name: "a", Apart: true}}, wait: []Pod{{Name: "b", Apart: true}}},
		"a volume of the node":        {nodes: []Node{disks}, wait: []Pod{{Name: "a", LocalVolume: true}}, want: overlooked},
		"a node without volumes":      {nodes: []Node{plain}, wait: []Pod{{Name: "a", LocalVolume: true}}},
		"a gang for one port":         {nodes: []Node{plain}, gang: two, wait: []Pod{{Name: "a", Gang: "g", Port: true}, {Name: "b", Gang: "g", Port: true}}},
		"a gang for one volume":       {nodes: []Node{disks}, gang: two, wait: []Pod{{Name: "a", Gang: "g", LocalVolume: true}, {Name: "b", Gang: "g", LocalVolume: true}}},
		"a gang that wants to be in one zone": {nodes: []Node{plain, whole}, gang: two,
			wait: []Pod{{Name: "a", Gang: "g", Near: true, MilliCPU: 4000}, {Name: "b", Gang: "g", Near: true, MilliCPU: 4000}}},
		"a gang of odd members that wants to be in one zone": {nodes: []Node{plain}, gang: two,
			wait: []Pod{{Name: "a", Gang: "g", Near: true, MilliCPU: 1000}, {Name: "b", Gang: "g", Near: true, MilliCPU: 2000}}},
		"a gang of like members that wants to be in one zone": {nodes: []Node{plain}, gang: two, want: overlooked,
			wait: []Pod{{Name: "a", Gang: "g", Near: true, MilliCPU: 1000}, {Name: "b", Gang: "g", Near: true, MilliCPU: 1000}}},
		"a pod that says that its room is promised to a gang that waits": {nodes: []Node{plain}, gang: two,
			says: "1 node(s) whose free capacity is promised to gang histories/g.",
			wait: []Pod{{Name: "a", Gang: "g", MilliCPU: 4000}, {Name: "b", Gang: "g", MilliCPU: 4000}, {Name: "c", MilliCPU: 4000}}},
		"a pod that says that its room is promised to a gang that does not wait": {nodes: []Node{plain}, gang: two, want: overlooked,
			says: "1 node(s) whose free capacity is promised to gang histories/g.", wait: []Pod{{Name: "a", Gang: "g"}, {Name: "c"}}},
		"a pod that is spread":             {nodes: []Node{plain, whole}, on: []Pod{{Name: "a", Spread: nodesEven}}, wait: []Pod{{Name: "b", Spread: nodesEven}}, want: overlooked},
		"a pod of which the node has more": {nodes: []Node{plain, small}, on: []Pod{{Name: "a", Spread: nodesEven}}, wait: []Pod{{Name: "b", Spread: nodesEven, MilliCPU: 2000}}},
		"a pod of which the zone has more": {nodes: []Node{plain, shared, small}, on: []Pod{{Name: "a", Spread: zonesEven}}, wait: []Pod{{Name: "b", Spread: zonesEven, MilliCPU: 2000}}},
		"a pod of which the zone may have more": {nodes: []Node{plain, shared, small}, on: []Pod{{Name: "a", Spread: zonesUneven}}, want: overlooked,
			wait: []Pod{{Name: "b", Spread: zonesUneven, MilliCPU: 2000}}},
		"a pod that may not go to the empty zone": {nodes: []Node{plain, small}, on: []Pod{{Name: "a", Spread: zonesEven}}, want: overlooked,
			wait: []Pod{{Name: "b", Spread: zonesEven, Zone: "a"}}},
		"a gang that is spread": {nodes: []Node{plain, whole}, gang: two, want: overlooked,
			wait: []Pod{{Name: "a", Gang: "g", Spread: zonesEven}, {Name: "b", Gang: "g", Spread: zonesEven}}},
		"a gang of which one zone gets too many": {nodes: []Node{plain, small}, gang: two,
			wait: []Pod{{Name: "a", Gang: "g", Spread: zonesEven, MilliCPU: 2000}, {Name: "b", Gang: "g", Spread: zonesEven, MilliCPU: 2000}}},
		"a gang of which the largest member has to come before the last small one": {nodes: []Node{plain, small}, gang: &Gang{Name: "g", MinMember: 3}, want: overlooked,
			wait: []Pod{{Name: "a", Gang: "g", Spread: zonesEven, VolumeZone: "a"}, {Name: "b", Gang: "g", Spread: zonesEven, VolumeZone: "a"},
				{Name: "c", Gang: "g", Spread: zonesEven, VolumeZone: "b", MilliCPU: 500}}},
		"less important pods that are spread, too": {nodes: []Node{plain, small}, on: []Pod{{Name: "a", Spread: nodesEven, MilliCPU: 4000}},
			wait: []Pod{{Name: "b", Spread: nodesEven, MilliCPU: 4000, Priority: 1}}},
		"too large a claim":        {nodes: []Node{claimed}, wait: []Pod{{Name: "a", ClaimedGPUs: 2}}},
		"a gang that fits":         {nodes: []Node{plain}, gang: two, wait: []Pod{{Name: "a", Gang: "g", MilliCPU: 2000}, {Name: "b", Gang: "g", MilliCPU: 2000}}, want: overlooked},
		"a gang of which one fits": {nodes: []Node{plain}, gang: two, wait: []Pod{{Name: "a", Gang: "g", MilliCPU: 2000}, {Name: "b", Gang: "g", MilliCPU: 3000}}},
		"a gang of which two of three fit": {nodes: []Node{plain}, gang: two, want: overlooked,
			wait: []Pod{{Name: "a", Gang: "g", MilliCPU: 5000}, {Name: "b", Gang: "g", MilliCPU: 2000}, {Name: "c", Gang: "g", MilliCPU: 2000}}},
		"a gang of which the leader does not fit": {nodes: []Node{plain}, gang: roles, wait: []Pod{
			{Name: "a", Gang: "g", Role: "leader", MilliCPU: 5000}, {Name: "b", Gang: "g", Role: "worker"}, {Name: "c", Gang: "g", Role: "worker"}}},
		"a gang without its PodGroup":  {nodes: []Node{plain}, wait: []Pod{{Name: "a", Gang: "g"}, {Name: "b", Gang: "g"}}},
		"a gang that is not complete":  {nodes: []Node{plain}, gang: two, wait: []Pod{{Name: "a", Gang: "g"}}},
		"a pod of the same importance": {nodes: []Node{plain}, on: []Pod{{Name: "a", MilliCPU: 4000}}, wait: []Pod{{Name: "b", MilliCPU: 4000}}},
		"a less important pod":         {nodes: []Node{plain}, on: []Pod{{Name: "a", MilliCPU: 4000}}, wait: []Pod{{Name: "b", MilliCPU: 4000, Priority: 1}}, want: unhelped},
		"a less important pod that is guarded": {nodes: []Node{plain}, on: []Pod{{Name: "a", MilliCPU: 4000, Guarded: true}},
			wait: []Pod{{Name: "b", MilliCPU: 4000, Priority: 1}}},
		"a gang of which one is more important": {nodes: []Node{plain}, gang: two, wait: []Pod{{Name: "c", MilliCPU: 3000, Priority: 1}},
			on: []Pod{{Name: "a", Gang: "g", MilliCPU: 2000}, {Name: "b", Gang: "g", MilliCPU: 2000, Priority: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{api: memapi.New(), weather: newWeather(&History{}), checker: invariants.New(0), past: past{made: map[string]*Pod{}}}
			simulation.ServeCustomKinds(w.api, nil)
			w.api.Observe = func(e memapi.Event) { w.checker.Observe(watch.EventType(e.Type), e.Object, e.Old) }
			var objects []runtime.Object
			for i := range test.nodes {
				objects = append(objects, test.nodes[i].objects()...)
			}
			objects[0].(*v1.Node).Spec.Unschedulable = test.closed
			if test.gang != nil {
				objects = append(objects, test.gang.object())
			}
			for i := range test.on {
				made := test.on[i].objects()
				made[len(made)-1].(*v1.Pod).Spec.NodeName = test.nodes[0].Name
				objects = append(objects, made...)
			}
			for i := range test.wait {
				w.made[test.wait[i].Name] = &test.wait[i]
				objects = append(objects, test.wait[i].objects()...)
			}
			if test.says != "" {
				objects[len(objects)-1].(*v1.Pod).Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: test.says}}
			}
			if err := w.create(objects...); err != nil {
				t.Fatal(err)
			}
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
