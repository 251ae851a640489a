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

// CorePlansNative reports whether kube-scheduler itself plans native groups. Otherwise they are gangs like others.
func CorePlansNative() bool { return utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) }

// Directory finds members, their gangs and PodGroups.
type Directory struct {
	// Policy decides which pods are members.
	Policy *read.OwnerPolicy
	// Groups has the PodGroups.
	Groups cache.Store
	Lister corelisters.PodLister
	// Ledger knows the members of each gang.
	Ledger *gang.Ledger

	mu sync.RWMutex
	// finished have the members that have ended, by namespace/name.
	finished []cache.Store
	// declared is what groups of Kubernetes and of other schedulers declare, as PodGroups.
	declared map[gang.ID]*schedulingv1alpha1.PodGroup
}

// Group returns the PodGroup of the gang, nil if there is none. For a group of another scheduler it has what the group
// declares, and what users have written on the generated PodGroup.
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

// Topology returns the levels that the gang asks for, by its PodGroup and one of its members; pod may be nil.
func (d *Directory) Topology(id gang.ID, pod *v1.Pod) (read.Topology, error) {
	return read.TopologyOf(d.Group(id), cmp.Or(pod, &v1.Pod{}))
}

// Stored returns the PodGroup of the gang as the informer has it, or nil.
func (d *Directory) Stored(id gang.ID) *schedulingv1alpha1.PodGroup {
	obj, exists, err := d.Groups.GetByKey(id.String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*schedulingv1alpha1.PodGroup)
}

// Declared returns what a group of Kubernetes or another scheduler declares for the gang, nil if there is none. The
// PodGroup must not be changed.
func (d *Directory) Declared(id gang.ID) *schedulingv1alpha1.PodGroup {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.declared[id]
}

// Declare sets the result of Declared, nil for none.
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

// Pod returns the member from the scheduler's informer, nil if it is gone.
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

// Any returns the member, even if it has ended, nil if it is gone.
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

// Of returns the gang that the pod is a member of, if any. A label or annotation with a bad value is an error.
func (d *Directory) Of(pod *v1.Pod) (read.Membership, error) {
	return d.Policy.GangOf(pod) //nolint:wrapcheck // it says what is wrong
}

// Twice reports whether the pod is in a native group, which counts, and declares another gang.
func (d *Directory) Twice(pod *v1.Pod) bool {
	if !d.Policy.NativeCounts(pod) {
		return false
	}
	alone := *pod
	alone.Spec.SchedulingGroup = nil
	return d.Has(&alone)
}

// Has reports whether the pod is a member of a gang, or names one with a bad value.
func (d *Directory) Has(pod *v1.Pod) bool {
	of, err := d.Of(pod)
	return err != nil || of.ID != gang.ID{}
}

// ID returns the gang that the pod is a member of, zero for none.
func (d *Directory) ID(pod *v1.Pod) gang.ID {
	of, err := d.Of(pod)
	if err != nil {
		return gang.ID{}
	}
	return of.ID
}

// OwnReason returns the reason for the pod if its gang waits for why: a pod that names an unknown group has its own.
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
