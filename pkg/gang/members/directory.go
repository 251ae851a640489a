package members

import (
	"cmp"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/features"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/read"
)

// CorePlansNative reports whether the scheduler's core plans native groups. Else they are gangs like others.
func CorePlansNative() bool { return utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) }

// Directory finds members, their gangs and PodGroups.
type Directory struct {
	// Policy says which pods are members.
	Policy *read.OwnerPolicy
	// Groups has the PodGroups.
	Groups cache.Store
	Lister corelisters.PodLister
	// Ledger knows the members of gangs.
	Ledger *gang.Ledger

	mu sync.RWMutex
	// finished hold the members that have ended, by namespace/name.
	finished []cache.Store
	// declared is what groups of Kubernetes and of other schedulers say about gangs, as PodGroups.
	declared map[gang.ID]*schedulingv1alpha1.PodGroup
}

// Group returns the PodGroup of the gang, or nil. That of a group of another scheduler says what the group says, and
// what users have written on the PodGroup that was generated for it.
func (d *Directory) Group(id gang.ID) *schedulingv1alpha1.PodGroup {
	stored, declared := d.Stored(id), d.Declared(id)
	if stored != nil && !read.Generated(stored) {
		return stored
	}
	if declared == nil || stored == nil {
		return cmp.Or(declared, stored)
	}
	both := *declared
	both.Annotations, both.Status = maps.Clone(declared.Annotations), stored.Status
	maps.Copy(both.Annotations, stored.Annotations)
	return &both
}

// Stored returns the PodGroup of the gang as the informer has it, or nil.
func (d *Directory) Stored(id gang.ID) *schedulingv1alpha1.PodGroup {
	obj, exists, err := d.Groups.GetByKey(id.String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*schedulingv1alpha1.PodGroup)
}

// Declared returns what a group of Kubernetes or another scheduler says about the gang, as a PodGroup that must not be
// changed, or nil.
func (d *Directory) Declared(id gang.ID) *schedulingv1alpha1.PodGroup {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.declared[id]
}

// Declare notes what such a group says, nil if there is none any more.
func (d *Directory) Declare(id gang.ID, pg *schedulingv1alpha1.PodGroup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if pg == nil {
		delete(d.declared, id)
		return
	}
	if d.declared == nil {
		d.declared = map[gang.ID]*schedulingv1alpha1.PodGroup{}
	}
	d.declared[id] = pg
}

// AddFinished adds a store of pods that have ended.
func (d *Directory) AddFinished(store cache.Store) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = append(d.finished, store)
}

// Pod returns the member as the scheduler's informer has it, or nil if the name is another pod's by now.
func (d *Directory) Pod(r gang.Ref) *v1.Pod {
	pod, err := d.Lister.Pods(r.Namespace).Get(r.Name)
	if err != nil || gang.UID(pod.UID) != r.UID {
		return nil
	}
	return pod
}

// Pods lists the pods that have not ended.
func (d *Directory) Pods() []*v1.Pod {
	pods, _ := d.Lister.List(labels.Everything()) // an error is of other listers than informers'
	return pods
}

// Settled reports whether the pod has a node or is gone.
func (d *Directory) Settled(pod *v1.Pod) bool {
	now := d.Pod(read.RefOf(pod))
	return now == nil || now.Spec.NodeName != ""
}

// Any returns the member, also if it has ended, or nil.
func (d *Directory) Any(r gang.Ref) *v1.Pod {
	if pod := d.Pod(r); pod != nil {
		return pod
	}
	if pod := d.Ended(r.Namespace, r.Name); pod != nil && gang.UID(pod.UID) == r.UID {
		return pod
	}
	return nil
}

// PodsOf returns the members of the gang that have not ended.
func (d *Directory) PodsOf(id gang.ID) []*v1.Pod {
	var pods []*v1.Pod
	for _, ref := range d.Ledger.Members(id) {
		if pod := d.Pod(ref); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Ended returns the member of that name that has ended, or nil.
func (d *Directory) Ended(namespace, name string) *v1.Pod {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, store := range d.finished {
		if obj, exists, err := store.GetByKey(namespace + "/" + name); err == nil && exists {
			return obj.(*v1.Pod)
		}
	}
	return nil
}

// Of returns the gang that the pod is a member of, if any. A pod that means to be in a gang but says so wrongly is an
// error.
func (d *Directory) Of(pod *v1.Pod) (read.Membership, error) {
	return d.Policy.GangOf(pod) //nolint:wrapcheck // it says what is wrong
}

// Twice reports whether the pod is in a native group that alone counts, and in one of ours.
func (d *Directory) Twice(pod *v1.Pod) bool {
	if !d.Policy.NativeCounts(pod) {
		return false
	}
	alone := *pod
	alone.Spec.SchedulingGroup = nil
	return d.Has(&alone)
}

// Has reports whether the pod is, or means to be, a member of a gang.
func (d *Directory) Has(pod *v1.Pod) bool {
	of, err := d.Of(pod)
	return err != nil || of.ID != gang.ID{}
}

// ID returns the gang that the pod is a member of, or the zero ID.
func (d *Directory) ID(pod *v1.Pod) gang.ID {
	of, err := d.Of(pod)
	if err != nil {
		return gang.ID{}
	}
	return of.ID
}

// OwnReason is why the gang holds the pod back: members that others lack do not help one whose group the gang does not
// have.
func (d *Directory) OwnReason(id gang.ID, pod *v1.Pod, why obstacle.Reason) obstacle.Reason {
	if o, _ := why.(obstacle.Obstacle); o.Cause != obstacle.TooFewMembers {
		return why
	}
	pg := d.Group(id)
	v, _ := d.Ledger.View(id)
	if pg == nil || v.Minimum.Tree == nil {
		return why
	}
	if name := read.GroupOf(pod, pg); name == "" || v.Minimum.Tree.Holds(name) {
		return why
	}
	return obstacle.Text(read.UnknownGroup(pod, pg).Error())
}
