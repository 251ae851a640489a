package networktopology_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/networktopology"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/simulation"
	"berth.dev/berth/pkg/simulation/memapi"
	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}

const profile = "berth-scheduler"

// rig is the shipped profile on nodes and pods, a cycle of which the test runs by hand.
type rig struct {
	framework.Framework
	ctx   context.Context
	infos []fwk.NodeInfo
}

func newRig(tb testing.TB, tune func(*config.NetworkTopologyArgs), nodes []*v1.Node, pods ...*v1.Pod) *rig {
	tb.Helper()
	configuration, err := schedulerconfig.Load("../../../manifests/base/scheduler-config.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range configuration.Component.Profiles {
		for _, plugin := range p.PluginConfig {
			if args, ok := plugin.Args.(*config.NetworkTopologyArgs); ok && tune != nil {
				tune(args)
			}
		}
	}
	api := memapi.New()
	for _, node := range nodes {
		if err := api.Create(node); err != nil {
			tb.Fatal(err)
		}
	}
	for _, pod := range pods {
		if err := api.Create(pod); err != nil {
			tb.Fatal(err)
		}
	}
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	sched, err := simulation.NewScheduler(ctx, api, configuration, 2)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(sched.Stop)
	r := &rig{Framework: sched.Profiles[profile], ctx: ctx}
	snapshot := r.SnapshotSharedLister().(*internalcache.Snapshot)
	if err := sched.Cache.UpdateSnapshot(klog.Logger{}, snapshot); err != nil {
		tb.Fatal(err)
	}
	if r.infos, err = snapshot.NodeInfos().List(); err != nil {
		tb.Fatal(err)
	}
	return r
}

// fleet is two nodes in each of two racks of two zones: "z1-r1-a" and so on.
func fleet() []*v1.Node {
	var nodes []*v1.Node
	for _, zone := range []string{"z1", "z2"} {
		for _, rack := range []string{"r1", "r2"} {
			for _, name := range []string{"a", "b"} {
				nodes = append(nodes, st.MakeNode().Name(zone+"-"+rack+"-"+name).UID(zone+rack+name).
					Label(v1.LabelTopologyZone, zone).Label("topology.kubernetes.io/rack", rack).
					Capacity(map[v1.ResourceName]string{"cpu": "16", "memory": "64Gi", "pods": "110"}).Obj())
			}
		}
	}
	return nodes
}

func pod(name, node string) *st.PodWrapper { return sized(name, node, "1") }

func sized(name, node, cores string) *st.PodWrapper {
	return st.MakePod().Namespace("default").Name(name).UID(name).SchedulerName(profile).Node(node).
		Req(map[v1.ResourceName]string{"cpu": cores, "memory": "1Gi"})
}

// filtered runs a cycle up to PreScore, marked as a dry run: in others Coscheduling sends members of gangs where it wants.
func (r *rig) filtered(tb testing.TB, p *v1.Pod, between func(fwk.CycleState)) fwk.CycleState {
	tb.Helper()
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	if _, status, _ := r.RunPreFilterPlugins(r.ctx, state, p); !status.IsSuccess() {
		tb.Fatalf("PreFilter: %v", status)
	}
	if between != nil {
		between(state)
	}
	if status := r.RunPreScorePlugins(r.ctx, state, p, r.infos); !status.IsSuccess() {
		tb.Fatalf("PreScore: %v", status)
	}
	return state
}

// scores are those of the plugin by node, without its weight; nil if it has no say.
func (r *rig) scores(tb testing.TB, p *v1.Pod, between func(fwk.CycleState)) map[string]int64 {
	tb.Helper()
	state := r.filtered(tb, p, between)
	all, status := r.RunScorePlugins(r.ctx, state, p, r.infos)
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
		{name: "a pod that keeps to itself is left to the others", peers: []*v1.Pod{pod("q", "z1-r1-a").Obj()}, pod: pod("p", "").Obj()},
		{name: "a member of a gang", peers: []*v1.Pod{pod("q", "z1-r1-a").Label(group, "g").Obj()}, pod: pod("p", "").Label(group, "g").Obj(), want: near},
		{name: "a gang whose members need not be near", tune: func(a *config.NetworkTopologyArgs) { a.GangGiBPerHour = new(int64(0)) },
			peers: []*v1.Pod{pod("q", "z1-r1-a").Label(group, "g").Obj()}, pod: pod("p", "").Label(group, "g").Obj()},
		{name: "an app that the args name", tune: func(a *config.NetworkTopologyArgs) { a.AppLabel = new(part) },
			peers: []*v1.Pod{pod("q", "z1-r1-a").Label(part, "shop").Obj()}, pod: pod("p", "").Label(part, "shop").Obj(), want: near},
		{name: "an app that they do not", peers: []*v1.Pod{pod("q", "z1-r1-a").Label(part, "shop").Obj()}, pod: pod("p", "").Label(part, "shop").Obj()},
		{name: "a pod that names another", peers: []*v1.Pod{pod("q", "z1-r1-a").Label("app", "cache").Obj()},
			pod: pod("p", "").Annotation("berth.dev/near", "app=cache").Obj(), want: near},
		{name: "a pod that another names", peers: []*v1.Pod{pod("q", "z1-r1-a").Annotation("berth.dev/near", "app=cache").Obj()},
			pod: pod("p", "").Label("app", "cache").Obj(), want: near},
		{name: "a pod that names what does not run", pod: pod("p", "").Annotation("berth.dev/near", "app=cache").Obj()},
		{name: "peers in two zones draw by their traffic", peers: []*v1.Pod{
			pod("q", "z1-r1-a").Label("app", "cache").Obj(), pod("r", "z2-r1-a").Label("app", "queue").Obj(),
		}, pod: pod("p", "").Annotation("berth.dev/near", "app=cache 9GiB/h; app=queue 1GiB/h").Obj(),
			want: map[string]int64{"z1-r1-a": 100, "z1-r1-b": 99, "z1-r2-a": 96, "z1-r2-b": 96, "z2-r1-a": 11, "z2-r1-b": 11, "z2-r2-a": 11, "z2-r2-b": 11}},
		{name: "a price between zones", tune: func(a *config.NetworkTopologyArgs) {
			a.Apart.MicroDollarsPerGiB = 20_000
		}, peers: []*v1.Pod{pod("q", "z1-r1-a").Label("app", "cache").Obj()}, pod: pod("p", "").Annotation("berth.dev/near", "app=cache").Obj(), want: near},
		{name: "a rack that costs as much as a zone", tune: func(a *config.NetworkTopologyArgs) {
			a.Levels[1].Microseconds, a.Levels[2].Microseconds, a.Levels[3].Microseconds = 150, 150, 150
		}, peers: []*v1.Pod{pod("q", "z1-r1-a").Label("app", "cache").Obj()}, pod: pod("p", "").Annotation("berth.dev/near", "app=cache").Obj(), want: byLevel(3)},
	} {
		r := newRig(t, test.tune, fleet(), test.peers...)
		if diff := cmp.Diff(test.want, r.scores(t, test.pod, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestPlannedSiblingsCountAndAssumedOnes(t *testing.T) {
	t.Parallel()
	const group = "scheduling.x-k8s.io/pod-group"
	r := newRig(t, nil, fleet())
	member, sibling := pod("p", "").Label(group, "g").Obj(), pod("q", "").Label(group, "g").Obj()
	var first fwk.NodeInfo
	for _, info := range r.infos {
		if info.Node().Name == "z1-r1-a" {
			first = info
		}
	}
	planned, err := framework.NewPodInfo(sibling)
	if err != nil {
		t.Fatal(err)
	}
	plan := func(state fwk.CycleState) {
		if status := r.RunPreFilterExtensionAddPod(r.ctx, state, member, planned, first); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if diff := cmp.Diff(byLevel(19), r.scores(t, member, plan)); diff != "" {
		t.Errorf("a planned sibling (-want +got):\n%s", diff)
	}
	takeBack := func(state fwk.CycleState) {
		plan(state)
		if status := r.RunPreFilterExtensionRemovePod(r.ctx, state, member, planned, first); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if got := r.scores(t, member, takeBack); got != nil {
		t.Errorf("a sibling that is not planned after all: got %v", got)
	}
	plugin := r.plugin(t)
	simulated := framework.NewCycleState()
	simulated.SetPodGroupSchedulingCycle(framework.NewCycleState())
	if status := plugin.Reserve(r.ctx, simulated, sibling, "z2-r2-b"); !status.IsSuccess() {
		t.Fatal(status)
	}
	plugin.Unreserve(r.ctx, simulated, sibling, "z2-r2-b")
	if got := r.scores(t, member, nil); got != nil {
		t.Errorf("a dry run has moved a sibling: got %v", got)
	}
	state := framework.NewCycleState()
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

// plugin finds the plugin of the profile.
func (r *rig) plugin(tb testing.TB) *networktopology.Plugin {
	tb.Helper()
	for _, plugin := range r.EnqueueExtensions() {
		if p, ok := plugin.(*networktopology.Plugin); ok {
			return p
		}
	}
	tb.Fatal("the profile does not have the plugin")
	return nil
}

func TestBadAnnotationKeepsThePodPending(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, fleet())
	bad := pod("p", "").Annotation("berth.dev/near", "app=cache 20GB").Obj()
	_, status, _ := r.RunPreFilterPlugins(r.ctx, framework.NewCycleState(), bad)
	if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), `berth.dev/near: "app=cache 20GB" is not a list of label selectors`) {
		t.Errorf("got %v", status)
	}
	events, err := r.plugin(t).EventsToRegister(r.ctx)
	if err != nil || len(events) != 1 {
		t.Fatalf("got events %v, %v", events, err)
	}
	good, other := pod("p", "").Annotation("berth.dev/near", "app=cache 20GiB/h").Obj(), pod("p", "").Annotation("berth.dev/near", "=").Obj()
	for _, test := range []struct {
		name     string
		old, now *v1.Pod
		want     fwk.QueueingHint
	}{
		{"the value can be read now", bad, good, fwk.Queue},
		{"the annotation is gone", bad, pod("p", "").Obj(), fwk.Queue},
		{"the value is as bad as before", bad, other, fwk.QueueSkip},
		{"the value was good before", good, pod("p", "").Obj(), fwk.QueueSkip},
	} {
		if got, err := events[0].QueueingHintFn(klog.Logger{}, bad, test.old, test.now); got != test.want || err != nil {
			t.Errorf("%s: got %v, %v", test.name, got, err)
		}
	}
	if _, err := events[0].QueueingHintFn(klog.Logger{}, bad, 1, 2); err == nil {
		t.Error("an update of something else than a pod is no error")
	}
}

func TestPodsThatTalkToOthersAreNotAlike(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, fleet(), pod("q", "z1-r1-a").Annotation("berth.dev/near", "app=cache").Obj())
	for _, test := range []struct {
		name   string
		pod    *v1.Pod
		signed bool
	}{
		{"a pod that keeps to itself", pod("p", "").Label("app", "web").Obj(), true},
		{"a member of a gang", pod("p", "").Label("scheduling.x-k8s.io/pod-group", "g").Obj(), false},
		{"a pod that names others", pod("p", "").Annotation("berth.dev/near", "app=web").Obj(), false},
		{"a pod that another names", pod("p", "").Label("app", "cache").Obj(), false},
		{"a pod with a bad annotation", pod("p", "").Annotation("berth.dev/near", ";").Obj(), false},
	} {
		if _, status := r.plugin(t).SignPod(r.ctx, test.pod); status.IsSuccess() != test.signed {
			t.Errorf("%s: got %v", test.name, status)
		}
	}
}

func TestTermsAddUpToTheScore(t *testing.T) {
	t.Parallel()
	prices := func(a *config.NetworkTopologyArgs) { a.Apart.MicroDollarsPerGiB = 20_000 }
	r := newRig(t, prices, fleet(), pod("q", "z1-r1-a").Label("app", "cache").Obj(), pod("r", "z2-r2-b").Label("app", "queue").Obj())
	p := pod("p", "").Annotation("berth.dev/near", "app=cache 3GiB/h; app=queue 1GiB/h").Obj()
	state := r.filtered(t, p, nil)
	plugin := r.plugin(t)
	for _, info := range r.infos {
		cost, err := plugin.Terms(r.ctx, state, p, info)
		if err != nil {
			t.Fatal(err)
		}
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
			if diff := cmp.Diff([]string{"same leaf 18.75", "apart 8000.00", "price 6975.45"}, said); diff != "" {
				t.Errorf("terms of a node in the rack of three quarters of the traffic (-want +got):\n%s", diff)
			}
		}
	}
	none := framework.NewCycleState()
	if cost, err := plugin.Terms(r.ctx, none, p, r.infos[0]); err != nil || len(cost.Terms) > 0 {
		t.Errorf("without PreScore: got terms %v, %v", cost, err)
	}
	if score, status := plugin.Score(r.ctx, none, p, r.infos[0]); !status.IsSuccess() || score != 0 {
		t.Errorf("without PreScore: got score %d, %v", score, status)
	}
}
