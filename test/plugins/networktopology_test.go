package plugins_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

// topologyRig is the shipped profile with other args of NetworkTopology.
func topologyRig(tb testing.TB, tune func(*config.NetworkTopologyArgs), nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	configuration := shipped(tb)
	for _, p := range configuration.Component.Profiles {
		for _, plugin := range p.PluginConfig {
			if args, ok := plugin.Args.(*config.NetworkTopologyArgs); ok && tune != nil {
				tune(args)
			}
		}
	}
	return newRigWith(tb, configuration, profileName, nodes, pods...)
}

// zones are two nodes in each of two racks of two zones: "z1-r1-a" and so on.
func zones() []*v1.Node {
	var nodes []*v1.Node
	for _, zone := range []string{"z1", "z2"} {
		for _, rack := range []string{"r1", "r2"} {
			for _, name := range []string{"a", "b"} {
				nodes = append(nodes, objects.Labelled(objects.Node(zone+"-"+rack+"-"+name, "cpu", "16", "memory", "64Gi"),
					v1.LabelTopologyZone, zone, "topology.kubernetes.io/rack", rack))
			}
		}
	}
	return nodes
}

// talker makes a pod on a node, or on none.
func talker(name, node string) *st.PodWrapper {
	return objects.Pod(name, "cpu", "1", "memory", "1Gi").SchedulerName(profileName).Node(node)
}

// filtered runs a cycle up to PreScore, marked as a dry run: in others Coscheduling sends members of gangs where it
// wants.
func (r *rig) filtered(tb testing.TB, p *v1.Pod, between func(fwk.CycleState)) fwk.CycleState {
	tb.Helper()
	state := upstream.NewCycleState()
	state.SetPodGroupSchedulingCycle(upstream.NewCycleState())
	if _, status, _ := r.all.RunPreFilterPlugins(r.ctx, state, p); !status.IsSuccess() {
		tb.Fatalf("PreFilter: %v", status)
	}
	if between != nil {
		between(state)
	}
	if status := r.all.RunPreScorePlugins(r.ctx, state, p, r.infos(tb)); !status.IsSuccess() {
		tb.Fatalf("PreScore: %v", status)
	}
	return state
}

// scores are those of the plugin by node, without its weight; nil if it has no say.
func (r *rig) scores(tb testing.TB, p *v1.Pod, between func(fwk.CycleState)) map[string]int64 {
	tb.Helper()
	state := r.filtered(tb, p, between)
	all, status := r.all.RunScorePlugins(r.ctx, state, p, r.infos(tb))
	if !status.IsSuccess() {
		tb.Fatalf("Score: %v", status)
	}
	var out map[string]int64
	for _, n := range all {
		for _, s := range n.Scores {
			if s.Name == networktopology.Name {
				if out == nil {
					out = map[string]int64{}
				}
				out[n.Name] = s.Score / 10
			}
		}
	}
	return out
}

// byLevel are scores of all nodes for one peer on z1-r1-a, by that of its rack.
func byLevel(rack int64) map[string]int64 {
	const zone, other = 3, 0
	return map[string]int64{"z1-r1-a": 100, "z1-r1-b": rack, "z1-r2-a": zone, "z1-r2-b": zone,
		"z2-r1-a": other, "z2-r1-b": other, "z2-r2-a": other, "z2-r2-b": other}
}

func TestNearNodesScoreHigher(t *testing.T) {
	t.Parallel()
	const group, part = "scheduling.x-k8s.io/pod-group", "app.kubernetes.io/part-of"
	near := byLevel(19)
	for _, test := range []struct {
		name  string
		tune  func(*config.NetworkTopologyArgs)
		peers []*v1.Pod
		pod   *v1.Pod
		want  map[string]int64
	}{
		{name: "a pod that keeps to itself is left to the others", peers: []*v1.Pod{talker("q", "z1-r1-a").Obj()},
			pod: talker("p", "").Obj()},
		{name: "a member of a gang", peers: []*v1.Pod{talker("q", "z1-r1-a").Label(group, "g").Obj()},
			pod: talker("p", "").Label(group, "g").Obj(), want: near},
		{name: "a gang whose members need not be near",
			tune:  func(a *config.NetworkTopologyArgs) { a.GangGiBPerHour = new(int64(0)) },
			peers: []*v1.Pod{talker("q", "z1-r1-a").Label(group, "g").Obj()}, pod: talker("p", "").Label(group, "g").Obj()},
		{name: "an app that the args name", tune: func(a *config.NetworkTopologyArgs) { a.AppLabel = new(part) },
			peers: []*v1.Pod{talker("q", "z1-r1-a").Label(part, "shop").Obj()}, pod: talker("p", "").Label(part, "shop").Obj(),
			want: near},
		{name: "an app that they do not", peers: []*v1.Pod{talker("q", "z1-r1-a").Label(part, "shop").Obj()},
			pod: talker("p", "").Label(part, "shop").Obj()},
		{name: "peers in two zones draw by their traffic", tune: func(a *config.NetworkTopologyArgs) {
			a.AppLabel, a.GangGiBPerHour, a.AppGiBPerHour = new(part), new(int64(9)), new(int64(1))
		}, peers: []*v1.Pod{
			talker("q", "z1-r1-a").Label(group, "g").Obj(), talker("r", "z2-r1-a").Label(part, "shop").Obj(),
		}, pod: talker("p", "").Label(group, "g").Label(part, "shop").Obj(),
			want: map[string]int64{"z1-r1-a": 100, "z1-r1-b": 99, "z1-r2-a": 96, "z1-r2-b": 96, "z2-r1-a": 11, "z2-r1-b": 11,
				"z2-r2-a": 11, "z2-r2-b": 11}},
		{name: "a rack that costs as much as a zone", tune: func(a *config.NetworkTopologyArgs) {
			a.Levels[1].Microseconds, a.Levels[2].Microseconds, a.Levels[3].Microseconds = 150, 150, 150
		}, peers: []*v1.Pod{talker("q", "z1-r1-a").Label(group, "g").Obj()},
			pod: talker("p", "").Label(group, "g").Obj(), want: byLevel(3)},
	} {
		r := topologyRig(t, test.tune, zones(), test.peers...)
		if diff := cmp.Diff(test.want, r.scores(t, test.pod, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestPlannedSiblingsCountAndAssumedOnes(t *testing.T) {
	t.Parallel()
	const group = "scheduling.x-k8s.io/pod-group"
	member, sibling := talker("p", "").Label(group, "g").Obj(), talker("q", "").Label(group, "g").Obj()
	r := topologyRig(t, nil, zones(), sibling)
	first, err := r.snapshot.NodeInfos().Get("z1-r1-a")
	require.NoError(t, err)
	planned, err := upstream.NewPodInfo(sibling)
	require.NoError(t, err)
	plan := func(state fwk.CycleState) {
		if status := r.all.RunPreFilterExtensionAddPod(r.ctx, state, member, planned, first); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if diff := cmp.Diff(byLevel(19), r.scores(t, member, plan)); diff != "" {
		t.Errorf("a planned sibling (-want +got):\n%s", diff)
	}
	takeBack := func(state fwk.CycleState) {
		plan(state)
		if status := r.all.RunPreFilterExtensionRemovePod(r.ctx, state, member, planned, first); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if got := r.scores(t, member, takeBack); got != nil {
		t.Errorf("a sibling that is not planned after all: got %v", got)
	}
	plugin := topologyOf(t, r)
	simulated := upstream.NewCycleState()
	simulated.SetPodGroupSchedulingCycle(upstream.NewCycleState())
	if status := plugin.Reserve(r.ctx, simulated, sibling, "z2-r2-b"); !status.IsSuccess() {
		t.Fatal(status)
	}
	plugin.Unreserve(r.ctx, simulated, sibling, "z2-r2-b")
	if got := r.scores(t, member, nil); got != nil {
		t.Errorf("a dry run has moved a sibling: got %v", got)
	}
	state := upstream.NewCycleState()
	if status := plugin.Reserve(r.ctx, state, sibling, "z1-r1-a"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if diff := cmp.Diff(byLevel(19), r.scores(t, member, nil)); diff != "" {
		t.Errorf("an assumed sibling (-want +got):\n%s", diff)
	}
	if plugin.Unreserve(r.ctx, state, sibling, "z1-r1-a"); r.scores(t, member, nil) != nil {
		t.Error("a sibling that was not bound still counts")
	}
}

func topologyOf(tb testing.TB, r *rig) *networktopology.Plugin {
	tb.Helper()
	return framework.Plugin[*networktopology.Plugin](tb, r.all)
}

func TestPodsThatTalkToOthersAreNotAlike(t *testing.T) {
	t.Parallel()
	r := topologyRig(t, nil, zones())
	for _, test := range []struct {
		name   string
		pod    *v1.Pod
		signed bool
	}{
		{"a pod that keeps to itself", talker("p", "").Label("app", "web").Obj(), true},
		{"a member of a gang", talker("p", "").Label("scheduling.x-k8s.io/pod-group", "g").Obj(), false},
	} {
		if _, status := topologyOf(t, r).SignPod(r.ctx, test.pod); status.IsSuccess() != test.signed {
			t.Errorf("%s: got %v", test.name, status)
		}
	}
}

func TestTermsOfTrafficAddUpToTheScore(t *testing.T) {
	t.Parallel()
	const group, part = "scheduling.x-k8s.io/pod-group", "app.kubernetes.io/part-of"
	app := func(a *config.NetworkTopologyArgs) {
		a.AppLabel, a.GangGiBPerHour, a.AppGiBPerHour = new(part), new(int64(3)), new(int64(1))
	}
	r := topologyRig(t, app, zones(), talker("q", "z1-r1-a").Label(group, "g").Obj(),
		talker("r", "z2-r2-b").Label(part, "shop").Obj())
	p := talker("p", "").Label(group, "g").Label(part, "shop").Obj()
	state := r.filtered(t, p, nil)
	plugin := topologyOf(t, r)
	for _, info := range r.infos(t) {
		cost, err := plugin.Terms(r.ctx, state, p, info)
		require.NoError(t, err)
		score, status := plugin.Score(r.ctx, state, p, info)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		sum := 0.0
		for _, term := range cost.Terms {
			sum += term.Amount
		}
		if diff := sum - float64(score)/1000; diff > 0.001 || diff < -0.001 {
			t.Errorf("node %s: the terms add up to %g, the score is %d ns: %v", info.Node().Name, sum, score, cost.Terms)
		}
		if info.Node().Name == "z1-r1-b" {
			var said []string
			for _, term := range cost.Terms {
				if term.Amount != 0 {
					said = append(said, fmt.Sprintf("%s %.2f", term.Name, term.Amount))
				}
			}
			if diff := cmp.Diff([]string{"same leaf 18.75", "apart 8000.00"}, said); diff != "" {
				t.Errorf("terms of a node in the rack of three quarters of the traffic (-want +got):\n%s", diff)
			}
		}
	}
	none := upstream.NewCycleState()
	if cost, err := plugin.Terms(r.ctx, none, p, r.infos(t)[0]); err != nil || len(cost.Terms) > 0 {
		t.Errorf("without PreScore: got terms %v, %v", cost, err)
	}
	if score, status := plugin.Score(r.ctx, none, p, r.infos(t)[0]); !status.IsSuccess() || score != 0 {
		t.Errorf("without PreScore: got score %d, %v", score, status)
	}
}
