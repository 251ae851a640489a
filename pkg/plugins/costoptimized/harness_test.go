package costoptimized

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	tf "k8s.io/kubernetes/pkg/scheduler/testing/framework"

	"k8s.io/utils/clock"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/clusterstate"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/simulation/plugintest"
	"berth.dev/berth/test/harness/leak"
)

const profile = "cost-optimized-scheduler"

// cluster is a scheduler framework with CostOptimized alone in one profile, on a snapshot of nodes and pods.
type cluster struct {
	framework framework.Framework
	infos     []fwk.NodeInfo
	plugin    *Plugin
	client    *fake.Clientset
	recorder  *events.FakeRecorder
	activator *activator
}

// activator stands for the scheduling queue, which is not part of a framework. It passes on the names of the pods.
type activator struct{ woken chan string }

func (a *activator) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for name := range pods {
		a.woken <- name
	}
}

// next receives what another goroutine sends, which may have no processor for seconds on a busy machine.
func next(t *testing.T, from <-chan string, what string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(time.Minute):
		t.Fatalf("waiting for %s: not within a minute", what)
		return ""
	}
}

// newCluster starts the plugin on the real clock, see newClusterAt.
func newCluster(t *testing.T, tune func(*config.CostOptimizedArgs), objects []runtime.Object, points ...string) *cluster {
	t.Helper()
	return newClusterAt(t, clock.RealClock{}, tune, objects, points...)
}

// newClusterAt starts the plugin, with defaulted args that tune may change, at the extension points named or at all.
func newClusterAt(t *testing.T, c clock.WithTicker, tune func(*config.CostOptimizedArgs), objects []runtime.Object, points ...string) *cluster {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	args := &config.CostOptimizedArgs{}
	config.SetDefaultsCostOptimizedArgs(args)
	if tune != nil {
		tune(args)
	}
	if len(points) == 0 {
		points = []string{"PreFilter", "Filter", "PreScore", "Score"}
	}
	var nodes []*v1.Node
	var pods []*v1.Pod
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.Node:
			nodes = append(nodes, o)
		case *v1.Pod:
			if o.Spec.NodeName != "" {
				pods = append(pods, o)
			}
		}
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := cache.NewSnapshot(pods, nodes)
	recorder := events.NewFakeRecorder(100)
	queue := &activator{woken: make(chan string, 100)}
	var plugin *Plugin
	remember := func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		var err error
		plugin, err = newPlugin(ctx, obj, handle, c)
		return plugin, err
	}
	f, err := tf.NewFramework(ctx, []tf.RegisterPluginFunc{
		tf.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		tf.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		tf.RegisterPluginAsExtensionsWithWeight(Name, 1, remember, points...),
		func(_ *frameworkruntime.Registry, p *schedulerapi.KubeSchedulerProfile) {
			p.PluginConfig = []schedulerapi.PluginConfig{{Name: Name, Args: args}}
		},
	}, profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithEventRecorder(recorder),
		frameworkruntime.WithPodActivator(queue),
	)
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	waitForCounts(t, plugin.running, objects)
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{framework: f, infos: infos, plugin: plugin, client: client, recorder: recorder, activator: queue}
}

// waitForCounts waits until the plugin has been told of all pods: informers' caches are filled before their handlers run.
func waitForCounts(t *testing.T, r *runningPods, objects []runtime.Object) {
	t.Helper()
	var running, members int64
	for _, o := range objects {
		if pod, ok := o.(*v1.Pod); ok && kubeview.KeepsNode(pod) {
			if pod.Spec.NodeName != "" {
				running++
			}
			if (&clusterstate.Gangs{}).Of(pod).Name != "" {
				members++
			}
		}
	}
	counted := func() bool {
		r.mu.RLock()
		defer r.mu.RUnlock()
		var sum int64
		for _, n := range r.gangs {
			sum += n
		}
		return sum == members && r.count(true)+r.count(false) == running
	}
	plugintest.Await(t, "the plugin to count the pods right", counted)
}

// schedule runs a pod through the extension points and returns the scores of the nodes that it may run on. Status is
// that of PreFilter where it rejects the pod, reasons are those of Filter by node.
func (c *cluster) schedule(t *testing.T, pod *v1.Pod) (scores map[string]int64, reasons map[string]string, rejected *fwk.Status) {
	t.Helper()
	ctx, state := t.Context(), framework.NewCycleState()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() && !status.IsSkip() {
		return nil, nil, status
	}
	scores, reasons = map[string]int64{}, map[string]string{}
	var feasible []fwk.NodeInfo
	for _, info := range c.infos {
		if status := c.framework.RunFilterPlugins(ctx, state, pod, info); !status.IsSuccess() {
			reasons[info.Node().Name] = status.Message()
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
		scores[n.Name] = n.TotalScore
	}
	return scores, reasons, nil
}

// node makes a node with eight GPUs, 96 cores and 1 TiB at a price; without a price if it is empty.
func node(name, price string, labels ...string) *v1.Node {
	n := st.MakeNode().Name(name).UID(name).Capacity(map[v1.ResourceName]string{
		"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8",
	})
	if price != "" {
		n = n.Annotation("berth.dev/price-per-hour", price)
	}
	for i := 0; i < len(labels); i += 2 {
		n = n.Label(labels[i], labels[i+1])
	}
	return n.Obj()
}

// smallNode makes a node of an eighth of that size.
func smallNode(name, price string) *v1.Node {
	n := node(name, price)
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("12"), "memory": resource.MustParse("128Gi"), "pods": resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("1")}
	return n
}

// eighth makes a pod that asks for an eighth of such a node.
func eighth(name string) *st.PodWrapper {
	return st.MakePod().Namespace("default").Name(name).UID(name).SchedulerName(profile).
		Req(map[v1.ResourceName]string{"cpu": "12", "memory": "128Gi", "nvidia.com/gpu": "1"})
}

// The framework counts into metrics that a scheduler registers at its start.
func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}

// ofDaemonSet makes the pod as the DaemonSet controller makes that of a node.
func ofDaemonSet(pod *st.PodWrapper, node string) *v1.Pod {
	return pod.OwnerReference("agent", appsv1.SchemeGroupVersion.WithKind("DaemonSet")).NodeAffinityIn(metav1.ObjectNameField, []string{node}, st.NodeSelectorTypeMatchFields).Obj()
}
