package scenarios_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // how far informers have come
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/plugins/coscheduling"
	"berth.dev/berth/pkg/sandbox"
)

const (
	// rationName is the plugin that Coscheduling knows nothing of.
	rationName = "Ration"
	// rationLabel says how many pods a node takes, by ration's count, and rationAtLabel at which extension point ration
	// turns away those that are too many: filter, reserve, permit, or late, after it has let them wait in Permit.
	rationLabel   = "scenario.test/ration"
	rationAtLabel = "scenario.test/ration-at"
)

// ration is a plugin that lets a node have a number of pods and counts them itself, in Reserve and nowhere else. A dry
// run that only filters never learns that the node is full.
type ration struct {
	handle fwk.Handle
	nodes  fwk.NodeInfoLister
	pods   corelisters.PodLister
	mu     sync.Mutex
	taken  map[string]map[types.UID]*v1.Pod
}

var (
	_ fwk.FilterPlugin      = &ration{}
	_ fwk.ReservePlugin     = &ration{}
	_ fwk.PermitPlugin      = &ration{}
	_ fwk.EnqueueExtensions = &ration{}
)

// newRation makes the plugin. What it counts is given back when a pod goes.
func newRation(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	r := &ration{handle: handle, nodes: handle.SnapshotSharedLister().NodeInfos(),
		pods: handle.SharedInformerFactory().Core().V1().Pods().Lister(), taken: map[string]map[types.UID]*v1.Pod{}}
	_, err := handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if pod, ok := o.(*v1.Pod); ok {
				r.give(pod)
			}
		}})
	return r, err
}

func (*ration) Name() string { return rationName }

// EventsToRegister names what may make room.
func (*ration) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}}}, nil
}

// refuse returns a status if the node, by what was taken besides the pod itself, is full at this extension point.
func (r *ration) refuse(node *v1.Node, pod *v1.Pod, at string) *fwk.Status {
	limit, err := strconv.Atoi(node.Labels[rationLabel])
	if err != nil || node.Labels[rationAtLabel] != at {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	others := 0
	for uid, by := range r.taken[node.Name] {
		// The event that has the pod tried again may come before the one that gives back what this pod had taken.
		if there, err := r.pods.Pods(by.Namespace).Get(by.Name); uid != pod.UID && err == nil && there.UID == uid {
			others++
		}
	}
	if others >= limit {
		return fwk.NewStatus(fwk.Unschedulable, "the ration of the node is used up")
	}
	return nil
}

func (r *ration) give(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pods := range r.taken {
		delete(pods, pod.UID)
	}
}

func (r *ration) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	return r.refuse(node.Node(), pod, "filter")
}

func (r *ration) Reserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, name string) *fwk.Status {
	node, err := r.nodes.Get(name)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if status := r.refuse(node.Node(), pod, "reserve"); !status.IsSuccess() {
		return status
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[name] == nil {
		r.taken[name] = map[types.UID]*v1.Pod{}
	}
	r.taken[name][pod.UID] = pod
	return nil
}

func (r *ration) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) { r.give(pod) }

func (r *ration) Permit(_ context.Context, _ fwk.CycleState, pod *v1.Pod, name string) (*fwk.Status, time.Duration) {
	info, err := r.nodes.Get(name)
	if err != nil {
		return fwk.AsStatus(err), 0
	}
	// The snapshot belongs to the cycle, which is over when the answer comes.
	node := info.Node()
	if node.Labels[rationAtLabel] == "late" {
		time.AfterFunc(lateAnswer, func() { r.answer(node, pod) })
		return fwk.NewStatus(fwk.Wait), time.Minute
	}
	return r.refuse(node, pod, "permit"), 0
}

// lateAnswer is how long ration thinks about pods that wait in Permit.
const lateAnswer = 200 * time.Millisecond

func (r *ration) answer(node *v1.Node, pod *v1.Pod) {
	w := r.handle.GetWaitingPod(pod.UID)
	if w == nil {
		return
	}
	if status := r.refuse(node, pod, "late"); status != nil {
		w.Reject(rationName, status.Message())
	} else {
		w.Allow(rationName)
	}
}

// ownPlugins are those that Coscheduling knows nothing of.
func ownPlugins() frameworkruntime.Registry {
	return frameworkruntime.Registry{rationName: newRation, vetoName: newVeto}
}

// runOwnScheduler runs a scheduler with Coscheduling, ration and veto in this process until ctx ends.
func runOwnScheduler(ctx context.Context, box *sandbox.Sandbox, config string) error {
	data, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(box.Dir()), "own-scheduler.yaml")
	data = fmt.Appendf(data, "clientConnection: {qps: 2000, burst: 4000, kubeconfig: %q}\n", box.Kubeconfig())
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(box.LogDir(), "own-scheduler.log"))
	if err != nil {
		return err
	}
	klog.LogToStderr(false)
	klog.SetOutput(log)
	opts := options.NewOptions()
	opts.ConfigFile = file
	opts.SecureServing.BindPort = 0
	if opts.InformerName, err = cache.NewInformerName("own-scheduler"); err != nil {
		return err
	}
	completed, sched, err := app.Setup(ctx, opts, app.WithPlugin(coscheduling.Name, coscheduling.New),
		app.WithPlugin(rationName, newRation),
		app.WithPlugin(vetoName, newVeto))
	if err != nil {
		return err
	}
	sched.SchedulingQueue, sched.FailureHandler = coscheduling.Listen(sched.Profiles, sched.SchedulingQueue,
		sched.FailureHandler)
	sched.Cache = coscheduling.Follow(sched.Profiles, sched.Cache, sched.WaitForHandlersSync)
	go func() {
		if err := app.Run(ctx, completed, sched); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The scheduler of the tests ended")
		}
	}()
	return nil
}
