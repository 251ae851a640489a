package gpuaware

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}

// harness is a scheduler's cache, snapshot and one profile's framework, stepped by the test.
type harness struct {
	ctx       context.Context
	client    *fake.Clientset
	factory   informers.SharedInformerFactory
	cache     cache.Cache
	snapshot  *cache.Snapshot
	framework framework.Framework
	plugin    *Plugin
	dra       fwk.SharedDRAManager
	recorder  *events.FakeRecorder
	logger    klog.Logger
	// told reports whether the resolver knows the device classes that there are.
	told toolscache.InformerSynced
}

// defaultArgs are the defaulted args, changed by the test.
func defaultArgs(tune ...func(*config.GPUAwareArgs)) *config.GPUAwareArgs {
	args := &config.GPUAwareArgs{}
	config.SetDefaultsGPUAwareArgs(args)
	for _, t := range tune {
		t(args)
	}
	return args
}

// alone is a profile with GPUAware and the stock plugin that checks resources, nothing else.
func alone(args *config.GPUAwareArgs) *schedulerapi.KubeSchedulerProfile {
	set := func(names ...string) schedulerapi.PluginSet {
		var s schedulerapi.PluginSet
		for _, n := range names {
			s.Enabled = append(s.Enabled, schedulerapi.Plugin{Name: n, Weight: 1})
		}
		return s
	}
	return &schedulerapi.KubeSchedulerProfile{
		SchedulerName: "gpu-aware-scheduler",
		Plugins: &schedulerapi.Plugins{
			QueueSort: set(queuesort.Name), Bind: set(defaultbinder.Name),
			PreFilter: set(noderesources.Name, Name), Filter: set(noderesources.Name, Name),
			Score: set(Name), Reserve: set(Name), PreBind: set(Name),
		},
		PluginConfig: []schedulerapi.PluginConfig{
			{Name: Name, Args: args},
			{Name: noderesources.Name, Args: &schedulerapi.NodeResourcesFitArgs{
				ScoringStrategy: &schedulerapi.ScoringStrategy{Type: schedulerapi.MostAllocated},
			}},
		},
	}
}

// newHarness starts one profile on these objects. Pods with a node are bound to it.
func newHarness(tb testing.TB, profile *schedulerapi.KubeSchedulerProfile, objects ...runtime.Object) *harness {
	tb.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(tb.Context(), klog.Logger{}))
	tb.Cleanup(cancel)
	client := fake.NewClientset(objects...)
	watched := watchOf(client, "pods")
	factory := informers.NewSharedInformerFactory(client, 0)
	h := &harness{
		ctx: ctx, client: client, factory: factory, snapshot: cache.NewEmptySnapshot(),
		cache: cache.New(ctx, nil, false, false), recorder: events.NewFakeRecorder(1000),
	}
	h.dra = h.newDRAManager(tb)
	h.framework, h.plugin = h.newFramework(tb, profile)
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	<-watched
	if h.told != nil {
		toolscache.WaitForCacheSync(ctx.Done(), h.told)
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.Node:
			h.cache.AddNode(h.logger, o)
		case *v1.Pod:
			if o.Spec.NodeName != "" {
				if err := h.cache.AddPod(h.logger, o); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	return h
}

// watchOf is closed once the first watch of a resource has begun. Informers have synced before that, and the client tells
// them nothing of what happens in between.
func watchOf(client *fake.Clientset, resource string) <-chan struct{} {
	begun := make(chan struct{})
	var once sync.Once
	client.PrependWatchReactor(resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		defer once.Do(func() { close(begun) })
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		return true, w, err
	})
	return begun
}

// newDRAManager makes what the scheduler keeps of claims, slices and device classes.
func (h *harness) newDRAManager(tb testing.TB) fwk.SharedDRAManager {
	tb.Helper()
	claims := assumecache.NewAssumeCache(h.logger, h.factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(h.ctx, tracker.Options{SliceInformer: h.factory.Resource().V1().ResourceSlices(), KubeClient: h.client})
	if err != nil {
		tb.Fatal(err)
	}
	manager := dynamicresources.NewDRAManager(h.ctx, claims, slices, h.factory)
	if handler, ok := manager.DeviceClassResolver().(toolscache.ResourceEventHandler); ok {
		told, err := h.factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(handler)
		if err != nil {
			tb.Fatal(err)
		}
		h.told = told.HasSynced
	}
	return manager
}

// newFramework makes a further profile of the same scheduler.
func (h *harness) newFramework(tb testing.TB, profile *schedulerapi.KubeSchedulerProfile) (framework.Framework, *Plugin) {
	tb.Helper()
	registry := frameworkplugins.NewInTreeRegistry()
	var plugin *Plugin
	err := registry.Register(Name, func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		made, err := New(ctx, obj, handle)
		if err == nil {
			plugin = made.(*Plugin)
		}
		return made, err
	})
	if err != nil {
		tb.Fatal(err)
	}
	f, err := frameworkruntime.NewFramework(h.ctx, registry, profile,
		frameworkruntime.WithClientSet(h.client), frameworkruntime.WithInformerFactory(h.factory),
		frameworkruntime.WithSharedDRAManager(h.dra), frameworkruntime.WithSnapshotSharedLister(h.snapshot),
		frameworkruntime.WithEventRecorder(h.recorder))
	if err != nil {
		tb.Fatal(err)
	}
	return f, plugin
}

// evaluate filters and scores all nodes for a pod. The error is what the pod's event would say.
func (h *harness) evaluate(tb testing.TB, f framework.Framework, pod *v1.Pod) (fwk.CycleState, []fwk.NodePluginScores, error) {
	tb.Helper()
	if err := h.cache.UpdateSnapshot(h.logger, h.snapshot); err != nil {
		tb.Fatal(err)
	}
	infos, err := h.snapshot.NodeInfos().List()
	if err != nil {
		tb.Fatal(err)
	}
	state := framework.NewCycleState()
	failure := &framework.FitError{Pod: pod, NumAllNodes: len(infos), Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
	if _, status, _ := f.RunPreFilterPlugins(h.ctx, state, pod); !status.IsSuccess() {
		failure.Diagnosis.PreFilterMsg = status.Message()
		return state, nil, failure
	}
	feasible := make([]fwk.NodeInfo, 0, len(infos))
	for _, info := range infos {
		if status := f.RunFilterPlugins(h.ctx, state, pod, info); status.IsSuccess() {
			feasible = append(feasible, info)
		} else {
			failure.Diagnosis.NodeToStatus.Set(info.Node().Name, status)
		}
	}
	if len(feasible) == 0 {
		return state, nil, failure
	}
	if status := f.RunPreScorePlugins(h.ctx, state, pod, feasible); !status.IsSuccess() {
		tb.Fatalf("PreScore: %v", status)
	}
	scores, status := f.RunScorePlugins(h.ctx, state, pod, feasible)
	if !status.IsSuccess() {
		tb.Fatalf("Score: %v", status)
	}
	return state, scores, nil
}

// place runs a pod through one scheduling and binding cycle and returns the pod as it is bound.
func (h *harness) place(tb testing.TB, pod *v1.Pod) (*v1.Pod, error) {
	tb.Helper()
	assumed, state, err := h.reserve(tb, pod)
	if err != nil {
		return nil, err
	}
	return h.bind(tb, state, assumed), nil
}

// reserve runs the scheduling cycle.
func (h *harness) reserve(tb testing.TB, pod *v1.Pod) (*v1.Pod, fwk.CycleState, error) {
	tb.Helper()
	state, scores, err := h.evaluate(tb, h.framework, pod)
	if err != nil {
		return nil, nil, err
	}
	best := scores[0]
	for _, s := range scores[1:] {
		if s.TotalScore > best.TotalScore {
			best = s
		}
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = best.Name
	if err := h.cache.AssumePod(h.logger, assumed); err != nil {
		tb.Fatal(err)
	}
	if status := h.framework.RunReservePluginsReserve(h.ctx, state, assumed, best.Name); !status.IsSuccess() {
		tb.Fatalf("Reserve on %s: %v", best.Name, status)
	}
	return assumed, state, nil
}

// bind runs the binding cycle up to the bound pod's return through the API.
func (h *harness) bind(tb testing.TB, state fwk.CycleState, assumed *v1.Pod) *v1.Pod {
	tb.Helper()
	if status := h.framework.RunPreBindPreFlights(h.ctx, state, assumed, assumed.Spec.NodeName); status.IsSkip() {
		return h.confirm(tb, assumed)
	}
	if status := h.framework.RunPreBindPlugins(h.ctx, state, assumed, assumed.Spec.NodeName); !status.IsSuccess() {
		tb.Fatalf("PreBind: %v", status)
	}
	stored, err := h.client.CoreV1().Pods(assumed.Namespace).Get(h.ctx, assumed.Name, metav1.GetOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	stored.Spec.NodeName = assumed.Spec.NodeName
	return h.confirm(tb, stored)
}

func (h *harness) confirm(tb testing.TB, bound *v1.Pod) *v1.Pod {
	tb.Helper()
	if err := h.cache.AddPod(h.logger, bound); err != nil {
		tb.Fatal(err)
	}
	return bound
}

// arrived lets the learner see a pod that needs not be looked up among claims.
func (l *learner) arrived(pod *v1.Pod) {
	if class, mixed, _ := l.classOf(context.Background(), pod); mixed {
		l.observe(class, pod)
	}
}

// add creates a pod in the API, unscheduled.
func (h *harness) add(tb testing.TB, pod *v1.Pod) *v1.Pod {
	tb.Helper()
	created, err := h.client.CoreV1().Pods(pod.Namespace).Create(h.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return created
}

// gpuNodeObject makes a node of n GPUs that carries these further labels.
func gpuNodeObject(name string, n int, product string, labels ...string) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
			"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": strconv.Itoa(n),
		}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("512Gi"),
			v1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": *resource.NewQuantity(int64(n), resource.DecimalSI),
		}},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	return node
}

// assignedTo is the pod as a scheduler of this project has put it on a node with a share of one of its devices.
func assignedTo(pod *v1.Pod, node string, device, milli, memMiB int) *v1.Pod {
	pod.Spec.NodeName = node
	pod.Status.Conditions = []v1.PodCondition{{Type: kubeview.GPUsAssigned, Status: v1.ConditionTrue, Message: fmt.Sprintf(
		`{"pod":%q,"node":%q,"devices":[%d],"milli":%d,"memMiB":%d}`, pod.UID, node, device, milli, memMiB)}}
	return pod
}

// podObject makes a pod with these requests and annotations.
func podObject(name string, requests, annotations map[string]string) *v1.Pod {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	for r, q := range requests {
		list[v1.ResourceName(r)] = resource.MustParse(q)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Annotations: maps.Clone(annotations)},
		Spec: v1.PodSpec{SchedulerName: "gpu-aware-scheduler", Containers: []v1.Container{
			{Name: "c", Image: "work:1", Resources: v1.ResourceRequirements{Requests: list}},
		}},
	}
}
