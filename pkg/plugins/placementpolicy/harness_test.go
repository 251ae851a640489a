package placementpolicy

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/simulation/memapi"
	"berth.dev/berth/pkg/simulation/plugintest"
	"berth.dev/berth/test/harness/leak"
)

const profile = "berth-scheduler"

// cluster is a scheduler framework with PlacementPolicy alone in one profile, on an API in memory.
type cluster struct {
	api       *memapi.Server
	framework *plugintest.Framework
	plugin    *Plugin
}

// newCluster starts the plugin with policies, given as specs by name, and other objects.
func newCluster(t testing.TB, policies map[string]string, objects ...runtime.Object) *cluster {
	t.Helper()
	api := memapi.New()
	api.Register(policyKind.Resource, "PlacementPolicy", false)
	c := &cluster{api: api}
	for name, spec := range policies {
		c.apply(t, name, spec)
	}
	for _, object := range objects {
		c.create(t, object)
	}
	nodes, pods := c.lists()
	remember := func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := New(ctx, obj, handle)
		c.plugin, _ = plugin.(*Plugin)
		return plugin, err
	}
	c.framework = plugintest.Start(t, &plugintest.Setup{
		Profile: profile, Name: Name, New: remember, Points: []string{"PreFilter", "Filter", "PreScore", "Score", "Reserve"},
		API: api.RESTConfig(), Nodes: nodes, Pods: pods,
	})
	return c
}

func (c *cluster) create(t testing.TB, object runtime.Object) {
	t.Helper()
	object = object.DeepCopyObject()
	switch object.(type) {
	case *v1.Pod:
		object.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
	case *v1.Node:
		object.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Node"))
	case *v1.Namespace:
		object.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Namespace"))
	}
	if err := c.api.Create(object); err != nil {
		t.Fatal(err)
	}
}

// apply creates a policy, or puts another in its place.
func (c *cluster) apply(t testing.TB, name, spec string) {
	t.Helper()
	plugintest.Apply(t, c.api, policyKind.Resource, plugintest.Object(t, "PlacementPolicy", name, spec))
}

func (c *cluster) lists() (nodes []*v1.Node, pods []*v1.Pod) {
	for _, obj := range c.api.List(v1.SchemeGroupVersion.WithResource("nodes")) {
		nodes = append(nodes, obj.(*v1.Node))
	}
	for _, obj := range c.api.List(v1.SchemeGroupVersion.WithResource("pods")) {
		if pod := obj.(*v1.Pod); pod.Spec.NodeName != "" {
			pods = append(pods, pod)
		}
	}
	return nodes, pods
}

// outcome is what became of a pod: where it may run and its points there, why not elsewhere, or why nowhere.
type outcome struct {
	Scores  map[string]int64
	Reasons map[string]string
	Refused string
}

// schedule runs a pod through the extension points up to Score.
func (c *cluster) schedule(t testing.TB, pod *v1.Pod) (outcome, fwk.CycleState) {
	t.Helper()
	ctx, state := t.Context(), framework.NewCycleState()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() && !status.IsSkip() {
		if status.Code() != fwk.UnschedulableAndUnresolvable {
			t.Fatalf("PreFilter: %v", status)
		}
		return outcome{Refused: status.Message()}, state
	}
	o := outcome{Scores: map[string]int64{}, Reasons: map[string]string{}}
	var feasible []fwk.NodeInfo
	for _, info := range c.framework.Infos(t) {
		if status := c.framework.RunFilterPlugins(ctx, state, pod, info); !status.IsSuccess() {
			o.Reasons[info.Node().Name] = status.Message()
			continue
		}
		feasible = append(feasible, info)
	}
	if status := c.framework.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		t.Fatalf("PreScore: %v", status)
	}
	byNode, status := c.framework.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		t.Fatalf("Score: %v", status)
	}
	for _, n := range byNode {
		o.Scores[n.Name] = n.TotalScore
	}
	return o, state
}

// place reserves a node for the pod, and returns why not.
func (c *cluster) place(t testing.TB, pod *v1.Pod, node string) (fwk.CycleState, string) {
	t.Helper()
	o, state := c.schedule(t, pod)
	if o.Refused != "" {
		return state, o.Refused
	}
	if reason := o.Reasons[node]; reason != "" {
		return state, reason
	}
	return state, c.framework.RunReservePluginsReserve(t.Context(), state, pod, node).Message()
}

// used is how many licenses are in use by the number of the rule.
func (c *cluster) used() []int64 {
	_, used := c.plugin.book.ledger.Used()
	return used
}

// woken returns the names of the pods that the loop of the plugin has woken since it was called last, in virtual time.
func (c *cluster) woken() []string {
	time.Sleep(time.Second) //nolint:forbidigo // virtual time
	synctest.Wait()
	names := map[string]bool{}
	for len(c.framework.Woken) > 0 {
		names[<-c.framework.Woken] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func pod(name string, annotations ...string) *st.PodWrapper {
	p := st.MakePod().Namespace("default").Name(name).UID(name).SchedulerName(profile)
	for i := 0; i < len(annotations); i += 2 {
		p = p.Annotation(annotations[i], annotations[i+1])
	}
	return p
}

func node(name string, labels ...string) *v1.Node {
	n := st.MakeNode().Name(name).UID(name).Capacity(map[v1.ResourceName]string{"cpu": "8", "memory": "8Gi", "pods": "110"})
	for i := 0; i < len(labels); i += 2 {
		n = n.Label(labels[i], labels[i+1])
	}
	return n.Obj()
}

func namespace(name string, labels ...string) *v1.Namespace {
	n := &v1.Namespace{}
	n.Name, n.UID, n.Labels = name, types.UID(name), map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

// The framework counts into metrics that a scheduler registers at its start.
func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}
