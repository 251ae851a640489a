package account

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"berth.dev/berth/test/harness/require"
)

func TestSpreadsCountExactly(t *testing.T) {
	t.Parallel()
	const zone = v1.LabelTopologyZone
	labelled := map[string]string{"app": "a", "version": "1"}
	member := func(edit func(*v1.TopologySpreadConstraint)) *v1.Pod {
		c := v1.TopologySpreadConstraint{TopologyKey: zone, MaxSkew: 1, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}
		if edit != nil {
			edit(&c)
		}
		pod := st.MakePod().Namespace("n").Name("p").Labels(labelled).NodeSelector(map[string]string{"pool": "x"}).Obj()
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{c}
		return pod
	}
	node := func(zoneName, pool string) *v1.Node {
		return st.MakeNode().Name(zoneName+pool).Label(zone, zoneName).Label("pool", pool).Obj()
	}
	for _, tc := range []struct {
		name   string
		edit   func(*v1.TopologySpreadConstraint)
		placed []string
		want   map[string]bool
	}{
		{"empty domains fit", nil, nil, map[string]bool{"a": true, "b": true, "c": true, "d": true}},
		{"with two of four domains taken only the others fit", nil, []string{"a", "b"},
			map[string]bool{"a": false, "b": false, "c": true, "d": true}},
		{"a full round begins again", nil, []string{"a", "b", "c", "d"}, map[string]bool{"a": true, "b": true, "c": true,
			"d": true}},
		{"a wider skew", func(c *v1.TopologySpreadConstraint) { c.MaxSkew = 2 }, []string{"a", "b"},
			map[string]bool{"a": true, "c": true}},
		{"too few domains count as an empty one", func(c *v1.TopologySpreadConstraint) { c.MinDomains = ptr.To[int32](5) },
			[]string{"a", "b", "c", "d"}, map[string]bool{"a": false}},
		{"nodes that the pod cannot use count if the policy says so", func(c *v1.TopologySpreadConstraint) {
			c.NodeAffinityPolicy = ptr.To(v1.NodeInclusionPolicyIgnore)
		}, []string{"a", "b", "c", "d"}, map[string]bool{"a": false, "e": true}},
		{"a wish is no constraint", func(c *v1.TopologySpreadConstraint) { c.WhenUnsatisfiable = v1.ScheduleAnyway },
			[]string{"a", "a"}, map[string]bool{"a": true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := member(tc.edit)
			var infos []fwk.NodeInfo
			for _, name := range []string{"a", "b", "c", "d"} {
				infos = append(infos, framework.NewNodeInfo())
				infos[len(infos)-1].SetNode(node(name, "x"))
			}
			other := framework.NewNodeInfo()
			other.SetNode(node("e", "y"))
			infos = append(infos, other)
			spreads, err := SpreadsOf(pod, infos)
			require.NoError(t, err)
			for _, name := range tc.placed {
				for _, s := range spreads {
					s.Add(pod, node(name, "x"))
				}
			}
			for name, want := range tc.want {
				fits := true
				for _, s := range spreads {
					fits = fits && s.Fits(node(name, "x"))
				}
				if fits != want {
					t.Errorf("domain %s: fits is %v", name, fits)
				}
			}
		})
	}
}

func TestSpreadsCountThePodsThatRun(t *testing.T) {
	t.Parallel()
	pod := st.MakePod().Namespace("n").Name("p").Label("app", "a").Label("version", "2").Obj()
	pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{TopologyKey: v1.LabelHostname, MaxSkew: 1,
		WhenUnsatisfiable: v1.DoNotSchedule,
		MatchLabelKeys:    []string{"version"},
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}
	var infos []fwk.NodeInfo
	for _, n := range []struct {
		node    string
		running *v1.Pod
	}{
		{"same", st.MakePod().Namespace("n").Name("q").Label("app", "a").Label("version", "2").Obj()},
		{"older", st.MakePod().Namespace("n").Name("q").Label("app", "a").Label("version", "1").Obj()},
		{"elsewhere", st.MakePod().Namespace("m").Name("q").Label("app", "a").Label("version", "2").Obj()},
		{"leaving", st.MakePod().Namespace("n").Name("q").Label("app", "a").Label("version", "2").Terminating().Obj()},
	} {
		info := framework.NewNodeInfo(n.running)
		info.SetNode(st.MakeNode().Name(n.node).Label(v1.LabelHostname, n.node).Obj())
		infos = append(infos, info)
	}
	spreads, err := SpreadsOf(pod, infos)
	require.NoError(t, err)
	for _, info := range infos {
		name := info.Node().Name
		if got, want := spreads[0].Fits(info.Node()), name != "same"; got != want {
			t.Errorf("node %s: fits is %v", name, got)
		}
	}
}

func TestTheLeastOfASpreadFollowsItsCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pod := st.MakePod().Namespace("n").Name("p").Obj()
		s := &Spread{constraint: &v1.TopologySpreadConstraint{TopologyKey: v1.LabelHostname}, pod: pod,
			selector: labels.Everything(), counts: map[string]int{}}
		domains := rapid.IntRange(1, 6).Draw(t, "domains")
		for i := range domains {
			s.counts[strconv.Itoa(i)] = rapid.IntRange(0, 3).Draw(t, "count")
		}
		s.findLeast()
		for range 20 {
			s.Add(pod, st.MakeNode().Label(v1.LabelHostname, strconv.Itoa(rapid.IntRange(0, domains-1).Draw(t, "domain"))).Obj())
			if least := slices.Min(slices.Collect(maps.Values(s.counts))); s.least != least {
				t.Fatalf("least is %d, want %d of %v", s.least, least, s.counts)
			}
		}
	})
}
