package gpuaware

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	harnessframework "berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/objects"
)

func TestMain(m *testing.M) {
	leak.Main(m)
}

// harness is a scheduler with one profile, stepped by the test.
type harness struct {
	*harnessframework.Scheduler
	ctx    context.Context
	client *fake.Clientset
	plugin *Plugin
	logger klog.Logger
}

// defaultArgs are the defaulted args, changed by the test.
func defaultArgs(tune ...func(*config.GPUAwareArgs)) *config.GPUAwareArgs {
	args := &config.GPUAwareArgs{}
	args.SetDefaults()
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
func newHarness(tb testing.TB, profile *schedulerapi.KubeSchedulerProfile, all ...runtime.Object) *harness {
	tb.Helper()
	client := fake.NewClientset(all...)
	watched := watchOf(client, "pods")
	s := harnessframework.Start(tb, harnessframework.Setup{Profile: profile, Plugins: allPlugins(), Client: client})
	<-watched
	return &harness{Scheduler: s, ctx: tb.Context(), client: client, plugin: harnessframework.Plugin[*Plugin](tb, s)}
}

// allPlugins are the stock ones and this one.
func allPlugins() frameworkruntime.Registry {
	registry := frameworkplugins.NewInTreeRegistry()
	registry[Name] = New
	return registry
}

// watchOf is closed once the first watch of a resource has begun. Informers have synced before that, and the client
// tells them nothing of what happens in between.
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

// newFramework makes a further profile of the same scheduler.
func (h *harness) newFramework(tb testing.TB, profile *schedulerapi.KubeSchedulerProfile) (framework.Framework,
	*Plugin) {
	tb.Helper()
	f := h.NewFramework(tb, profile, allPlugins())
	return f, harnessframework.Plugin[*Plugin](tb, f)
}

// evaluate filters and scores all nodes for a pod. The error is what the pod's event would say.
func (h *harness) evaluate(tb testing.TB, f framework.Framework, pod *v1.Pod) (fwk.CycleState, []fwk.NodePluginScores,
	error) {
	tb.Helper()
	infos := h.Infos(tb)
	o := harnessframework.Cycle(tb, f, framework.NewCycleState(), pod, infos)
	if len(o.Scores) > 0 {
		return o.State, o.Scores, nil
	}
	failure := &framework.FitError{Pod: pod, NumAllNodes: len(infos),
		Diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
	if o.Rejected != nil {
		failure.Diagnosis.PreFilterMsg = o.Rejected.Message()
	}
	for node, status := range o.Refused {
		failure.Diagnosis.NodeToStatus.Set(node, status)
	}
	return o.State, nil, failure
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
	state, scores, err := h.evaluate(tb, h, pod)
	if err != nil {
		return nil, nil, err
	}
	best := (&harnessframework.Outcome{Scores: scores}).Best()
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = best
	if err := h.Cache.AssumePod(h.logger, assumed); err != nil {
		tb.Fatal(err)
	}
	if status := h.RunReservePluginsReserve(h.ctx, state, assumed, best); !status.IsSuccess() {
		tb.Fatalf("Reserve on %s: %v", best, status)
	}
	return assumed, state, nil
}

// bind runs the binding cycle up to the bound pod's return through the API.
func (h *harness) bind(tb testing.TB, state fwk.CycleState, assumed *v1.Pod) *v1.Pod {
	tb.Helper()
	if status := h.RunPreBindPreFlights(h.ctx, state, assumed, assumed.Spec.NodeName); status.IsSkip() {
		return h.confirm(tb, assumed)
	}
	if status := h.RunPreBindPlugins(h.ctx, state, assumed, assumed.Spec.NodeName); !status.IsSuccess() {
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
	if err := h.Cache.AddPod(h.logger, bound); err != nil {
		tb.Fatal(err)
	}
	return bound
}

// runs lets the mix know of a pod that runs on a node which no test looks at.
func (c *shared) runs(pod *v1.Pod) {
	request, err := c.views.keys.PodGPURequest(pod)
	if err != nil {
		panic(err)
	}
	c.views.totals.mu.Lock()
	defer c.views.totals.mu.Unlock()
	if class := gpu.ShapeOf(&request.Request, 0); class.Count > 0 {
		c.views.totals.running.Add(class, controllerOf(pod), 1)
	} else {
		c.views.totals.running.AddBeside(class.CPUMilli)
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
	node := objects.Node(name, "cpu", "64", "memory", "512Gi", "nvidia.com/gpu", strconv.Itoa(n)).
		Label("nvidia.com/gpu.product", product).Label("nvidia.com/gpu.count", strconv.Itoa(n))
	return objects.Labelled(node, labels...)
}

// assignedTo is the pod as a scheduler of this project has put it on a node with a share of one of its devices.
func assignedTo(pod *v1.Pod, node string, device, milli, memMiB int) *v1.Pod {
	pod.Spec.NodeName = node
	pod.Status.Conditions = []v1.PodCondition{{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue, Message: fmt.Sprintf(
		`{"pod":%q,"node":%q,"devices":[%d],"milli":%d,"memMiB":%d}`, pod.UID, node, device, milli, memMiB)}}
	return pod
}

// podObject makes a pod with these requests and annotations.
func podObject(name string, requests, annotations map[string]string) *v1.Pod {
	asks := []string{"cpu", "1"}
	for resource, amount := range requests {
		asks = append(asks, resource, amount)
	}
	return objects.Pod(name, asks...).SchedulerName("gpu-aware-scheduler").Annotations(maps.Clone(annotations)).Obj()
}
