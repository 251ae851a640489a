package plugins_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
)

func TestWhatNodesCost(t *testing.T) {
	t.Parallel()
	on := func(node string) *v1.Pod { return eighth("on-" + node).Node(node).Obj() }
	daemonOn := func(node string) *v1.Pod {
		return ofDaemonSet(objects.Pod("daemon-"+node, "cpu", "1").Node(node), node)
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
		return objects.Pod("cpu", "cpu", cores, "memory", "4Gi").Obj()
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
		"a node with DaemonSet pods alone is empty": {
			objects: []runtime.Object{priced("used", "24"), priced("daemons", "24"), on("used"), daemonOn("used"),
				daemonOn("daemons")},
			want: map[string]int64{"used": 100, "daemons": 14},
		},
		"an empty node that may not be given back is as good as a running one": {
			objects: []runtime.Object{priced("used", "24"), annotated(priced("kept", "24"), "karpenter.sh/do-not-disrupt",
				"true"), on("used")},
			want: map[string]int64{"used": 100, "kept": 100},
		},
		"in a static fleet no node is kept alive by a pod": {
			tune:    static,
			objects: []runtime.Object{priced("used", "24"), priced("empty", "24"), on("used")},
			want:    map[string]int64{"used": 100, "empty": 100},
		},
		"an unknown price ranks just behind the median": {
			tune:    static,
			objects: []runtime.Object{priced("a", "10"), priced("b", "20"), priced("c", "40"), priced("unknown", "")},
			want:    map[string]int64{"a": 100, "b": 52, "c": 27, "unknown": 51},
		},
		"an unknown price is never the best because it is unknown": {
			tune:    static,
			objects: []runtime.Object{priced("a", "10"), priced("bad", "$1")},
			want:    map[string]int64{"a": 100, "bad": 99},
		},
		"an unknown price to be avoided ranks behind the dearest": {
			tune:    func(a *config.CostOptimizedArgs) { static(a); *a.UnknownPrice = config.UnknownPriceAvoid },
			objects: []runtime.Object{priced("a", "1"), priced("dearest", "900000"), priced("unknown", "")},
			want:    map[string]int64{"a": 100, "dearest": 2, "unknown": 1},
		},
		"with default rates an unknown price is estimated": {
			// 96 × 0.03 + 1024 × 0.004 + 8 × 0.35 = 9.776 dollars
			tune:    func(a *config.CostOptimizedArgs) { static(a); *a.UnknownPrice = config.UnknownPriceDefaultRates },
			objects: []runtime.Object{priced("a", "9.776"), priced("unknown", ""), priced("double", "19.552")},
			want:    map[string]int64{"a": 100, "unknown": 100, "double": 52},
		},
		"without any price all nodes are alike": {
			objects: []runtime.Object{priced("a", ""), priced("b", "")},
			want:    map[string]int64{"a": 0, "b": 0},
		},
		"without any price a node that leaves comes last": {
			objects: []runtime.Object{tainted(priced("leaving", ""), "karpenter.sh/disrupted"), priced("a", ""),
				priced("b", "")},
			want: map[string]int64{"leaving": 0, "a": 1, "b": 1},
		},
		"with more pods expected the node that is cheap for its room is opened": {
			// The small node is cheaper, and dearer for eight like this one.
			objects: []runtime.Object{priced("large", "24"), smallPriced("small", "6"),
				member("m1").Obj(), member("m2").Obj(), member("m3").Obj(), member("m4").Obj(), member("m5").Obj(),
				member("m6").Obj(), member("m7").Obj(), member("m8").Obj()},
			pod:  member("m1").Obj(),
			want: map[string]int64{"large": 100, "small": 50},
		},
		"a node that is about to go comes last however cheap": {
			tune: static,
			objects: []runtime.Object{tainted(priced("leaving", "0.01"), "karpenter.sh/disrupted"), priced("dear", "100"),
				priced("dearest", "900000")},
			want: map[string]int64{"leaving": 0, "dear": 100, "dearest": 2},
		},
		"the whole gang's loss is charged where a member may be interrupted": {
			tune: func(a *config.CostOptimizedArgs) {
				static(a)
				a.Interruptions = []config.InterruptionRisk{{CapacityType: "spot", PerThousandHours: 500, LostMinutes: 60}}
			},
			objects: []runtime.Object{priced("spot", "10", karpenterLabel, "spot"), priced("on-demand", "20"),
				member("m1").Obj(), member("m2").Obj(), member("m3").Obj()},
			pod: member("m1").Annotation(spotKey, "tolerate").Obj(),
			// Each hour half an hour of three members' work is lost: two and a half shares instead of one.
			want: map[string]int64{"spot": 81, "on-demand": 100},
		},
		"GPUs that a pod without GPU strands are charged to it": {
			tune: static,
			// The same host for the same money; on one node the pod would take the last cores beside six free GPUs.
			objects: []runtime.Object{priced("roomy", "24"), priced("tight", "24"),
				objects.Pod("filler", "cpu", "86", "nvidia.com/gpu", "2").Node("tight").Obj()},
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
					{Requirements: requirement("type", "big"), PricePerHour: "20"},
					{Requirements: requirement(karpenterLabel, "spot"), PricePerHour: "10", Weight: new(int32(1))},
				}
				a.SetDefaults()
				a.Interruptions = nil
			},
			objects: []runtime.Object{priced("big", "", "type", "big"), priced("big-spot", "", "type", "big", karpenterLabel,
				"spot"),
				priced("stated", "40", "type", "big"), priced("stated-spot", "10", karpenterLabel, "spot")},
			pod:  eighth("tolerant").Annotation(spotKey, "tolerate").Obj(),
			want: map[string]int64{"big": 52, "big-spot": 100, "stated": 27, "stated-spot": 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				pod := tc.pod
				if pod == nil {
					pod = eighth("new").Obj()
				}
				if diff := cmp.Diff(tc.want, bill(t, tc.tune, tc.objects...).Cycle(t, pod).Totals()); diff != "" {
					t.Errorf("scores (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Profiles may enable Score and nothing else, as published examples do.
func TestScoreAloneRanksNodesToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fleet := []runtime.Object{priced("a", "10"), priced("b", "20"), priced("spot", "1", karpenterLabel, "spot")}
		got := framework.Start(t, billSetup(nil, fleet, "Score")).Cycle(t, eighth("new").Obj()).Totals()
		// All three are empty; the pod avoids spot, which scoring alone can only rank last.
		if diff := cmp.Diff(map[string]int64{"a": 100, "b": 52, "spot": 0}, got); diff != "" {
			t.Errorf("scores (-want +got):\n%s", diff)
		}
	})
}
