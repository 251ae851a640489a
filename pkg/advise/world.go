package advise

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

const (
	// parallelism is how many nodes are examined at a time: more than the cores of a workstation gain nothing.
	parallelism = 8
	// moment is how often a condition is looked at.
	moment = time.Second
	// returnAfter is how long a controller takes to replace a pod that is gone.
	returnAfter = time.Second
	// quiet is for how long nothing has to happen before what has not happened counts as what will not: longer than the
	// usual back-off of the queue, with which a pod that a change wakes is tried again.
	quiet = 30 * time.Second
)

var (
	podResource   = v1.SchemeGroupVersion.WithResource("pods")
	nodeResource  = v1.SchemeGroupVersion.WithResource("nodes")
	claimResource = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
)

// key names a pod.
type key = types.NamespacedName

func keyOf(pod *v1.Pod) key { return key{Namespace: pod.Namespace, Name: pod.Name} }

// world is the cluster in memory, on a virtual clock, with the scheduler running in it.
type world struct {
	api    *memapi.Server
	sched  *simulation.Scheduler
	settle func()
	// profiles as they are without the index of candidates: they look at every node.
	profiles map[string]framework.Framework

	mu sync.Mutex
	// events counts the pods that were bound or deleted, gone names those that were deleted and not by us.
	events int
	gone   map[key]bool
	ours   map[key]bool
}

// simulate lets a scheduler run over the objects, which are not changed, while f watches and interferes.
func simulate(configuration *schedulerconfig.Configuration, objects []runtime.Object, now time.Time, ties tieOrder,
	f func(*world) error) error {
	return simulation.Settled(now, func(settle func()) error {
		w := &world{api: memapi.New(), settle: settle, gone: map[key]bool{}, ours: map[key]bool{}}
		w.api.MutateBinding, w.api.Observe = simulation.StartPod, w.observe
		lowest := int32(math.MaxInt32)
		err := simulation.Fill(w.api, objects, func(obj runtime.Object) runtime.Object {
			if pod, ok := obj.(*v1.Pod); ok {
				lowest = min(lowest, corev1helpers.PodPriority(pod))
			}
			return obj.DeepCopyObject()
		})
		if err != nil {
			return err
		}
		stop, err := w.start(configuration, lowest, ties)
		if err != nil {
			return err
		}
		defer stop()
		w.rest(nil)
		return f(w)
	})
}

func (w *world) start(configuration *schedulerconfig.Configuration, lowest int32, ties tieOrder) (stop func(),
	err error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	w.sched, err = simulation.NewScheduler(ctx, w.api, configuration, parallelism, func(s *simulation.Scheduler) {
		w.profiles = maps.Clone(s.Profiles)
		candidates.Wrap(s.Profiles)
		ties.wrap(s.Profiles)
		simulation.SpareHopeless(s, lowest)
	})
	if err != nil {
		cancel()
		return nil, err
	}
	w.sched.SchedulingQueue.Run(klog.FromContext(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.sched.ScheduleOne(ctx)
		}
	}()
	return func() {
		cancel()
		w.sched.Stop()
		<-done
	}, nil
}

func (w *world) observe(e memapi.Event) {
	pod, ok := e.Object.(*v1.Pod)
	if !ok || e.Type == memapi.Added {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	leaving := e.Type == memapi.Deleted || pod.DeletionTimestamp != nil
	switch {
	case leaving && !w.ours[keyOf(pod)]:
		w.gone[keyOf(pod)] = true
		w.events++
	case !leaving && pod.Spec.NodeName != "" && e.Old.(*v1.Pod).Spec.NodeName == "":
		w.events++
	}
}

// rest lets time pass until the condition holds, if there is one, or nothing has happened for a while. It returns
// whether the condition holds.
func (w *world) rest(done func() bool) bool {
	last, still := -1, time.Duration(0)
	for {
		w.settle()
		if done != nil && done() {
			return true
		}
		w.mu.Lock()
		events := w.events
		w.mu.Unlock()
		if events != last {
			last, still = events, 0
		}
		if still >= quiet {
			return false
		}
		time.Sleep(moment) //nolint:forbidigo // virtual time
		still += moment
	}
}

// pod returns the pod of that name as it is now, nil if there is none. It must not be changed.
func (w *world) pod(name key) *v1.Pod {
	pod, _ := w.api.Get(podResource, name).(*v1.Pod)
	return pod
}

// node is the node that the pod has been given, empty if it has none.
func (w *world) node(name key) string {
	if pod := w.pod(name); pod != nil {
		return pod.Spec.NodeName
	}
	return ""
}

func (w *world) allBound(names []key) bool {
	for _, name := range names {
		if w.node(name) == "" {
			return false
		}
	}
	return true
}

// lost names the pods that the scheduler itself has evicted.
func (w *world) lost() map[key]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.gone)
}

// cordon closes a node to new pods, or opens it again.
func (w *world) cordon(node string, closed bool) error {
	err := w.api.Change(nodeResource, key{Name: node},
		func(obj runtime.Object) { obj.(*v1.Node).Spec.Unschedulable = closed })
	if err != nil {
		return fmt.Errorf("changing node %s: %w", node, err)
	}
	return nil
}

// remove deletes pods that come to nothing.
func (w *world) remove(names []key) {
	w.mu.Lock()
	for _, name := range names {
		w.ours[name] = true
	}
	w.mu.Unlock()
	for _, name := range names {
		w.api.Delete(podResource, name)
	}
}

// move evicts pods at the same time and lets their controllers replace them. It returns whether all of them run again.
func (w *world) move(names []key) (bool, error) {
	var pods []*v1.Pod
	for _, name := range names {
		pod := w.pod(name)
		if pod == nil {
			return false, nil
		}
		pods = append(pods, pod)
	}
	w.remove(names)
	for _, pod := range pods {
		if err := w.renewClaims(pod); err != nil {
			return false, err
		}
	}
	w.settle()
	time.Sleep(returnAfter) //nolint:forbidigo // virtual time
	w.mu.Lock()
	for _, name := range names {
		delete(w.ours, name)
	}
	w.mu.Unlock()
	for _, pod := range pods {
		if err := w.api.Create(replacement(pod)); err != nil {
			return false, fmt.Errorf("replacing pod %s: %w", keyOf(pod), err)
		}
	}
	return w.rest(func() bool { return w.allBound(names) }), nil
}

// replacement is the pod that a controller makes for one that is gone. It keeps the name, by which it is found again.
func replacement(pod *v1.Pod) *v1.Pod {
	out := gpuview.Unplaced(pod)
	out.UID, out.ResourceVersion, out.DeletionTimestamp = replacementUID(pod), "", nil
	out.CreationTimestamp = metav1.Now()
	return out
}

func replacementUID(pod *v1.Pod) types.UID { return pod.UID + "-again" }

// renewClaims replaces the claims that were made for the pod, without what was allocated to them.
func (w *world) renewClaims(pod *v1.Pod) error {
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName == nil {
			continue
		}
		name := key{Namespace: pod.Namespace, Name: *s.ResourceClaimName}
		claim, ok := w.api.Get(claimResource, name).(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		w.api.Delete(claimResource, name)
		fresh := claim.DeepCopy()
		fresh.UID, fresh.ResourceVersion = "", ""
		for i := range fresh.OwnerReferences {
			if fresh.OwnerReferences[i].UID == pod.UID {
				fresh.OwnerReferences[i].UID = replacementUID(pod)
			}
		}
		fresh.Status = resourcev1.ResourceClaimStatus{}
		if err := w.api.Create(fresh); err != nil {
			return fmt.Errorf("replacing resource claim %s: %w", name, err)
		}
	}
	return nil
}
