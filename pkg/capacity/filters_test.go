package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/require"
)

// filtering is a profile with some filters; fit compares requests.
type filtering struct {
	framework.Framework
	filters []string
	plugins []fwk.EnqueueExtensions
}

func (filtering) ProfileName() string { return v1.DefaultSchedulerName }

func (f filtering) ListPlugins() *config.Plugins {
	var p config.Plugins
	for _, name := range f.filters {
		p.Filter.Enabled = append(p.Filter.Enabled, config.Plugin{Name: name})
	}
	return &p
}

func (f filtering) EnqueueExtensions() []fwk.EnqueueExtensions { return f.plugins }

func (filtering) SharedDRAManager() fwk.SharedDRAManager { return nil }

// theFilters makes a profile with all filters that the index stands for, but for some.
func theFilters(t *testing.T, args *config.NodeResourcesFitArgs, without ...string) filtering {
	t.Helper()
	args.ScoringStrategy = &config.ScoringStrategy{Type: config.LeastAllocated,
		Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}}}
	fit, err := noderesources.NewFit(t.Context(), args, nil, feature.Features{})
	require.NoError(t, err)
	f := filtering{plugins: []fwk.EnqueueExtensions{fit.(fwk.EnqueueExtensions)}}
	for _, name := range []string{names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity,
		names.NodePorts, names.NodeResourcesFit} {
		if !cmp.Equal(without, []string{name}) {
			f.filters = append(f.filters, name)
		}
	}
	return f
}

func TestAccountRefusesNothingThatTheProfileAccepts(t *testing.T) {
	t.Parallel()
	const rdma = "example.com/rdma"
	ask := func(requests map[v1.ResourceName]string) *v1.Pod {
		return st.MakePod().SchedulerName(v1.DefaultSchedulerName).Req(requests).Obj()
	}
	bare := ask(nil)
	large := ask(map[v1.ResourceName]string{v1.ResourceCPU: "64"})
	connected := ask(map[v1.ResourceName]string{v1.ResourceCPU: "1", rdma: "1"})
	selected := st.MakePod().SchedulerName(v1.DefaultSchedulerName).NodeSelector(map[string]string{"kind": "a"}).Obj()
	named := st.MakePod().SchedulerName(v1.DefaultSchedulerName).Node("another").Obj()
	foreign := connected.DeepCopy()
	foreign.Spec.SchedulerName = "another"
	node := func() *st.NodeWrapper {
		return st.MakeNode().Name("n").Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "16", v1.ResourcePods: "110"})
	}
	tainted := node().Taints([]v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}).Obj()
	cordoned := node().Unschedulable(true).Obj()
	for _, tc := range []struct {
		name    string
		args    config.NodeResourcesFitArgs
		without string
		node    *v1.Node
		pod     *v1.Pod
		fits    bool
	}{
		{"a resource that the node lacks", config.NodeResourcesFitArgs{}, "", node().Obj(), connected, false},
		{"a resource that is ignored", config.NodeResourcesFitArgs{IgnoredResources: []string{rdma}}, "", node().Obj(),
			connected, true},
		{"a resource of a group that is ignored", config.NodeResourcesFitArgs{IgnoredResourceGroups: []string{"example.com"}},
			"", node().Obj(), connected, true},
		{"another resource is ignored", config.NodeResourcesFitArgs{IgnoredResources: []string{rdma + "2"}}, "", node().Obj(),
			connected, false},
		{"CPUs are never ignored", config.NodeResourcesFitArgs{IgnoredResources: []string{"cpu"}}, "", node().Obj(), large,
			false},
		{"what another scheduler ignores is not known", config.NodeResourcesFitArgs{IgnoredResources: []string{rdma}}, "",
			node().Obj(), foreign, false},
		{"too large a request where requests are not compared", config.NodeResourcesFitArgs{}, names.NodeResourcesFit,
			node().Obj(), large, true},
		{"a taint", config.NodeResourcesFitArgs{}, "", tainted, bare, false},
		{"a taint where taints do not count", config.NodeResourcesFitArgs{}, names.TaintToleration, tainted, bare, true},
		{"a selector", config.NodeResourcesFitArgs{}, "", node().Obj(), selected, false},
		{"a selector where selectors do not count", config.NodeResourcesFitArgs{}, names.NodeAffinity, node().Obj(), selected,
			true},
		{"a cordon", config.NodeResourcesFitArgs{}, "", cordoned, bare, false},
		{"a cordon where cordons do not count", config.NodeResourcesFitArgs{}, names.NodeUnschedulable, cordoned, bare, true},
		{"another node's name", config.NodeResourcesFitArgs{}, "", node().Obj(), named, false},
		{"another node's name where names do not count", config.NodeResourcesFitArgs{}, names.NodeName, node().Obj(), named,
			true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set := &process.Profiles{}
			set.Add(theFilters(t, &tc.args, tc.without))
			x := New(set)
			x.Feed.SetNode(tc.node)
			// Another node offers the resource, or nothing would be known of it.
			x.Feed.SetNode(st.MakeNode().Name("other").Unschedulable(true).Label("k",
				"other").Taints([]v1.Taint{{Key: "other", Effect: v1.TaintEffectNoSchedule}}).
				Capacity(map[v1.ResourceName]string{rdma: "8"}).Obj())
			key := x.Acquire(tc.pod)
			if fits := x.SlotsOn(key, []string{tc.node.Name})[0] > 0; fits != tc.fits {
				t.Errorf("fits by the index: %v, want %v", fits, tc.fits)
			}
			if key != x.ShapeOf(tc.pod) {
				t.Error("the shape that is acquired is not that of the pod")
			}
		})
	}
}

// refusing is a plugin that refuses nodes with a label to pods with the label.
type refusing struct {
	fwk.FilterPlugin
	fwk.EnqueueExtensions
	label string
}

func (r refusing) Name() string { return r.label }

func (r refusing) NodeRule(pod *v1.Pod) process.NodeRule {
	if pod.Labels[r.label] == "" {
		return nil
	}
	return r
}

func (r refusing) Key() string { return r.label }

func (r refusing) Against(node *v1.Node) string {
	if node.Labels[r.label] == "" {
		return ""
	}
	return "node(s) with " + r.label
}

func TestTheRulesOfAllPluginsCount(t *testing.T) {
	t.Parallel()
	set := &process.Profiles{}
	set.Add(filtering{filters: []string{"a", "b"}, plugins: []fwk.EnqueueExtensions{refusing{label: "a"},
		refusing{label: "b"}}})
	x := New(set)
	for _, label := range []string{"a", "b", "c"} {
		x.Feed.SetNode(st.MakeNode().Name("with-"+label).Label(label, "yes").
			Capacity(map[v1.ResourceName]string{v1.ResourcePods: "1"}).Obj())
	}
	for labels, want := range map[string]string{
		"":   "3 nodes that fit",
		"a":  "1 node with a, 2 nodes that fit",
		"b":  "1 node with b, 2 nodes that fit",
		"ab": "1 node with a, 1 node with b, 1 node that fits",
	} {
		pod := st.MakePod().SchedulerName(v1.DefaultSchedulerName)
		for _, label := range labels {
			pod.Label(string(label), "yes")
		}
		if got := x.Causes(x.Acquire(pod.Obj()), nil, nil, nil).String(); got != want {
			t.Errorf("a pod with the labels %q: %q, want %q", labels, got, want)
		}
	}
}

// claiming is a profile of no pod, whose device classes hand out resources.
type claiming struct {
	framework.Framework
	classes classes
}

func (claiming) ProfileName() string { return "claiming" }

func (c claiming) SharedDRAManager() fwk.SharedDRAManager { return c.classes }

type classes struct {
	fwk.SharedDRAManager
	claimed map[v1.ResourceName]bool
}

func (c classes) DeviceClassResolver() fwk.DeviceClassResolver { return c }

func (c classes) GetDeviceClass(name v1.ResourceName) *resourcev1.DeviceClass {
	if !c.claimed[name] {
		return nil
	}
	return &resourcev1.DeviceClass{}
}
