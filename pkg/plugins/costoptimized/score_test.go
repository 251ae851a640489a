package costoptimized

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
)

const (
	karpenterLabel = "karpenter.sh/capacity-type"
	spotKey        = "berth.dev/spot"
)

func TestScores(t *testing.T) {
	t.Parallel()
	on := func(node string) *v1.Pod { return eighth("on-" + node).Node(node).Obj() }
	daemonOn := func(node string) *v1.Pod {
		return ofDaemonSet(st.MakePod().Namespace("default").Name("daemon-"+node).UID("daemon-"+node).Node(node).
			Req(map[v1.ResourceName]string{"cpu": "1"}), node)
	}
	tainted := func(n *v1.Node, key string) *v1.Node {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectPreferNoSchedule})
		return n
	}
	annotated := func(n *v1.Node, key, value string) *v1.Node {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[key] = value
		return n
	}
	cpuOnly := func(cores string) *v1.Pod {
		return st.MakePod().Namespace("default").Name("cpu").UID("cpu").Req(map[v1.ResourceName]string{"cpu": cores, "memory": "4Gi"}).Obj()
	}
	member := func(name string) *st.PodWrapper {
		return eighth(name).Label("scheduling.x-k8s.io/pod-group", "training")
	}
	static := func(a *config.CostOptimizedArgs) { *a.Fleet = config.FleetStatic }
	for name, tc := range map[string]struct {
		tune    func(*config.CostOptimizedArgs)
		objects []runtime.Object
		pod     *v1.Pod
		want    map[string]int64
	}{
		"a running A100 node before a running H100 node before an empty one": {
			objects: []runtime.Object{node("a100", "24.00"), node("h100", "40.20"), node("h100-empty", "40.20"), on("a100"), on("h100")},
			want:    map[string]int64{"a100": 100, "h100": 62, "h100-empty": 8},
		},
		"two dollars ten before two dollars ninety": {
			tune:    static,
			objects: []runtime.Object{node("cheap", "2.10"), node("dear", "2.90")},
			want:    map[string]int64{"cheap": 100, "dear": 74},
		},
		"a node of thirty-five cents is dearer than one that costs nothing": {
			tune:    static,
			objects: []runtime.Object{node("free", "0"), node("cheap", "0.35")},
			want:    map[string]int64{"free": 100, "cheap": 2},
		},
		"a node with DaemonSet pods alone is empty": {
			objects: []runtime.Object{node("used", "24"), node("daemons", "24"), on("used"), daemonOn("used"), daemonOn("daemons")},
			want:    map[string]int64{"used": 100, "daemons": 14},
		},
		"an empty node that may not be given back is as good as a running one": {
			objects: []runtime.Object{node("used", "24"), annotated(node("kept", "24"), "karpenter.sh/do-not-disrupt", "true"), on("used")},
			want:    map[string]int64{"used": 100, "kept": 100},
		},
		"in a static fleet no node is kept alive by a pod": {
			tune:    static,
			objects: []runtime.Object{node("used", "24"), node("empty", "24"), on("used")},
			want:    map[string]int64{"used": 100, "empty": 100},
		},
		"an unknown price ranks just behind the median": {
			tune:    static,
			objects: []runtime.Object{node("a", "10"), node("b", "20"), node("c", "40"), node("unknown", "")},
			want:    map[string]int64{"a": 100, "b": 52, "c": 27, "unknown": 51},
		},
		"an unknown price is never the best because it is unknown": {
			tune:    static,
			objects: []runtime.Object{node("a", "10"), node("bad", "$1")},
			want:    map[string]int64{"a": 100, "bad": 99},
		},
		"an unknown price to be avoided ranks behind the dearest": {
			tune:    func(a *config.CostOptimizedArgs) { static(a); *a.UnknownPrice = config.UnknownPriceAvoid },
			objects: []runtime.Object{node("a", "1"), node("dearest", "900000"), node("unknown", "")},
			want:    map[string]int64{"a": 100, "dearest": 2, "unknown": 1},
		},
		"with default rates an unknown price is estimated": {
			// 96 × 0.03 + 1024 × 0.004 + 8 × 0.35 = 9.776 dollars
			tune:    func(a *config.CostOptimizedArgs) { static(a); *a.UnknownPrice = config.UnknownPriceDefaultRates },
			objects: []runtime.Object{node("a", "9.776"), node("unknown", ""), node("double", "19.552")},
			want:    map[string]int64{"a": 100, "unknown": 100, "double": 52},
		},
		"without any price all nodes are alike": {
			objects: []runtime.Object{node("a", ""), node("b", "")},
			want:    map[string]int64{"a": 0, "b": 0},
		},
		"without any price a node that leaves comes last": {
			objects: []runtime.Object{tainted(node("leaving", ""), "karpenter.sh/disrupted"), node("a", ""), node("b", "")},
			want:    map[string]int64{"leaving": 0, "a": 1, "b": 1},
		},
		"with more pods expected the node that is cheap for its room is opened": {
			// The small node is cheaper, and dearer for eight like this one.
			objects: []runtime.Object{node("large", "24"), smallNode("small", "6"),
				member("m1").Obj(), member("m2").Obj(), member("m3").Obj(), member("m4").Obj(), member("m5").Obj(), member("m6").Obj(), member("m7").Obj(), member("m8").Obj()},
			pod:  member("m1").Obj(),
			want: map[string]int64{"large": 100, "small": 50},
		},
		"a pod alone opens the node of the lowest price": {
			objects: []runtime.Object{node("large", "24"), smallNode("small", "6")},
			want:    map[string]int64{"large": 26, "small": 100},
		},
		"a node that is about to go comes last however cheap": {
			tune:    static,
			objects: []runtime.Object{tainted(node("leaving", "0.01"), "karpenter.sh/disrupted"), node("dear", "100"), node("dearest", "900000")},
			want:    map[string]int64{"leaving": 0, "dear": 100, "dearest": 2},
		},
		"spot is cheaper by its price and dearer by its risk": {
			tune: func(a *config.CostOptimizedArgs) {
				static(a)
				a.Interruptions = []config.InterruptionRisk{{CapacityType: "spot", PerThousandHours: 1000, LostMinutes: 60}}
			},
			objects: []runtime.Object{node("spot", "10", karpenterLabel, "spot"), node("on-demand", "20")},
			pod:     eighth("tolerant").Annotation(spotKey, "tolerate").Obj(),
			// Once an hour an hour is lost: the share counts twice.
			want: map[string]int64{"spot": 100, "on-demand": 100},
		},
		"the whole gang's loss is charged where a member may be interrupted": {
			tune: func(a *config.CostOptimizedArgs) {
				static(a)
				a.Interruptions = []config.InterruptionRisk{{CapacityType: "spot", PerThousandHours: 500, LostMinutes: 60}}
			},
			objects: []runtime.Object{node("spot", "10", karpenterLabel, "spot"), node("on-demand", "20"),
				member("m1").Obj(), member("m2").Obj(), member("m3").Obj()},
			pod: member("m1").Annotation(spotKey, "tolerate").Obj(),
			// Each hour half an hour of three members' work is lost: two and a half shares instead of one.
			want: map[string]int64{"spot": 81, "on-demand": 100},
		},
		"GPUs that a pod without GPU strands are charged to it": {
			tune: static,
			// The same host for the same money; on one node the pod would take the last cores beside six free GPUs.
			objects: []runtime.Object{node("roomy", "24"), node("tight", "24"),
				st.MakePod().Name("filler").UID("filler").Node("tight").Req(map[v1.ResourceName]string{"cpu": "86", "nvidia.com/gpu": "2"}).Obj()},
			pod:  cpuOnly("10"),
			want: map[string]int64{"roomy": 100, "tight": 3},
		},
		"a table in the args prices nodes by their labels": {
			tune: func(a *config.CostOptimizedArgs) {
				static(a)
				requirement := func(key, value string) []v1.NodeSelectorRequirement {
					return []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}}
				}
				a.Prices = []config.NodePrice{
					{Requirements: requirement("type", "big"), PricePerHour: new("20")},
					{Requirements: requirement(karpenterLabel, "spot"), PriceAdjustment: new("-50%")},
				}
				config.SetDefaultsCostOptimizedArgs(a)
				a.Interruptions = nil
			},
			objects: []runtime.Object{node("big", "", "type", "big"), node("big-spot", "", "type", "big", karpenterLabel, "spot"),
				node("stated", "40", "type", "big"), node("stated-spot", "10", karpenterLabel, "spot")},
			pod:  eighth("tolerant").Annotation(spotKey, "tolerate").Obj(),
			want: map[string]int64{"big": 52, "big-spot": 100, "stated": 27, "stated-spot": 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := tc.pod
			if pod == nil {
				pod = eighth("new").Obj()
			}
			scores, _, rejected := newCluster(t, tc.tune, tc.objects).schedule(t, pod)
			if rejected != nil {
				t.Fatal(rejected)
			}
			if diff := cmp.Diff(tc.want, scores); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		})
	}
}

// Profiles may enable Score and nothing else, as published examples do.
func TestScoreAloneRanksNodesToo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, []runtime.Object{node("a", "10"), node("b", "20"), node("spot", "1", karpenterLabel, "spot")}, "Score")
	scores, _, rejected := c.schedule(t, eighth("new").Obj())
	if rejected != nil {
		t.Fatal(rejected)
	}
	// All three are empty; the pod avoids spot, which scoring alone can only rank last.
	if diff := cmp.Diff(map[string]int64{"a": 100, "b": 52, "spot": 0}, scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}
