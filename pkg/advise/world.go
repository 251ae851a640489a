package advise

import (
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/schedulerconfig"
)

const (
	// moment is the interval in which a condition is checked.
	moment = time.Second
	// returnAfter is how long a controller takes to replace a deleted pod.
	returnAfter = time.Second
	// quiet is how long nothing has to change before a run counts as finished: longer than the usual back-off of the
	// queue, after which a pod is tried again.
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
type world struct{ *simulation.World }

// simulate runs a scheduler on copies of the objects while f observes and changes the cluster.
func simulate(configuration *schedulerconfig.Configuration, objects []runtime.Object, now time.Time, ties tieOrder,
	f func(*world) error) error {
	return simulation.Virtual(now, func() error {
		w := &world{simulation.NewWorld()}
		w.API.StartPods = true
		lowest := int32(math.MaxInt32)
		err := w.Fill(objects, func(obj runtime.Object) runtime.Object {
			if pod, ok := obj.(*v1.Pod); ok {
				lowest = min(lowest, corev1helpers.PodPriority(pod))
			}
			return obj.DeepCopyObject()
		})
		if err != nil {
			return err
		}
		defer w.Stop()
		err = w.Start(simulation.Setup{Config: configuration}, func() {
			ties.wrap(w.Profiles)
			simulation.SkipHopelessPreemption(w.World, lowest)
		})
		if err != nil {
			return err
		}
		w.Run()
		w.rest(nil)
		return f(w)
	})
}

// rest lets time pass until the condition holds, if there is one, or nothing has changed for a while. It reports
// whether the condition holds.
func (w *world) rest(done func() bool) bool {
	last, still := -1, time.Duration(0)
	for {
		w.Settle()
		if done != nil && done() {
			return true
		}
		if changes := w.Changes(); changes != last {
			last, still = changes, 0
		}
		if still >= quiet {
			return false
		}
		time.Sleep(moment) //nolint:forbidigo // virtual time
		still += moment
	}
}

// pod returns the current pod, which must not be changed, nil if there is none.
func (w *world) pod(name key) *v1.Pod {
	pod, _ := w.API.Get(podResource, name).(*v1.Pod)
	return pod
}

// node is the node of the pod, empty if it has none.
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

// cordon closes a node to new pods, or opens it again.
func (w *world) cordon(node string, closed bool) error {
	err := w.API.Change(nodeResource, key{Name: node},
		func(obj runtime.Object) { obj.(*v1.Node).Spec.Unschedulable = closed })
	if err != nil {
		return fmt.Errorf("changing node %s: %w", node, err)
	}
	return nil
}

// move evicts pods at the same time and lets their controllers replace them. It reports whether all replacements run.
func (w *world) move(names []key) (bool, error) {
	var pods []*v1.Pod
	for _, name := range names {
		pod := w.pod(name)
		if pod == nil {
			return false, nil
		}
		pods = append(pods, pod)
	}
	for _, name := range names {
		w.Remove(name)
	}
	for _, pod := range pods {
		if err := w.renewClaims(pod); err != nil {
			return false, err
		}
	}
	w.Settle()
	time.Sleep(returnAfter) //nolint:forbidigo // virtual time
	for _, pod := range pods {
		if err := w.API.Create(replacement(pod)); err != nil {
			return false, fmt.Errorf("replacing pod %s: %w", keyOf(pod), err)
		}
	}
	return w.rest(func() bool { return w.allBound(names) }), nil
}

// replacement is the pod that a controller creates for a deleted one. It keeps the name, so that it can be found.
func replacement(pod *v1.Pod) *v1.Pod {
	out := gpuview.Unplaced(pod)
	out.UID, out.ResourceVersion, out.DeletionTimestamp = replacementUID(pod), "", nil
	out.CreationTimestamp = metav1.Now()
	return out
}

func replacementUID(pod *v1.Pod) types.UID { return pod.UID + "-again" }

// renewClaims replaces the claims that were made for the pod, without their allocations.
func (w *world) renewClaims(pod *v1.Pod) error {
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName == nil {
			continue
		}
		name := key{Namespace: pod.Namespace, Name: *s.ResourceClaimName}
		claim, ok := w.API.Get(claimResource, name).(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		w.API.Delete(claimResource, name)
		fresh := claim.DeepCopy()
		fresh.UID, fresh.ResourceVersion = "", ""
		for i := range fresh.OwnerReferences {
			if fresh.OwnerReferences[i].UID == pod.UID {
				fresh.OwnerReferences[i].UID = replacementUID(pod)
			}
		}
		fresh.Status = resourcev1.ResourceClaimStatus{}
		if err := w.API.Create(fresh); err != nil {
			return fmt.Errorf("replacing resource claim %s: %w", name, err)
		}
	}
	return nil
}
