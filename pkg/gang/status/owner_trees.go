package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// Refile is called with each native PodGroup whose pods may be in another gang from now on, and the gang that they were
// in until now. It has no name if they were in gangs of their own.
type Refile func(from gang.ID, podGroup string)

// FollowTrees makes the policy know the trees of native PodGroups. Call it before Follow.
func (o *Owners) FollowTrees(policy *read.OwnerPolicy, refile Refile) {
	o.refile = refile
	policy.Trees = o.trees
}

// FollowCore follows the native groups that kube-scheduler itself plans: they are no gangs, but some may be disrupted
// only as a whole. It asks for the informers only if the feature gates are on: an informer of an API that is not served
// never syncs.
func (o *Owners) FollowCore(factory kubeinformers.SharedInformerFactory) error {
	if !members.CorePlansNative() {
		return nil
	}
	set := func(g metav1.Object, composite bool, node *grouptree.Node) {
		o.trees.Set(grouptree.Key{Namespace: g.GetNamespace(), Name: g.GetName(), Composite: composite}, node)
	}
	_, err := informers.Handle(factory, factory.Scheduling().V1beta1().PodGroups().Informer(),
		informers.Events(func(_, g *schedulingv1beta1.PodGroup) {
			parent, mode := ptr.Deref(g.Spec.ParentCompositePodGroupName, ""), g.Spec.DisruptionMode
			set(g, false, &grouptree.Node{Parent: parent, All: mode != nil && mode.All != nil})
		}, func(g *schedulingv1beta1.PodGroup) { set(g, false, nil) }))
	if err == nil && utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		_, err = informers.Handle(factory, factory.Scheduling().V1alpha3().CompositePodGroups().Informer(),
			informers.Events(func(_, g *schedulingv1alpha3.CompositePodGroup) {
				parent, mode := ptr.Deref(g.Spec.ParentCompositePodGroupName, ""), g.Spec.DisruptionMode
				set(g, true, &grouptree.Node{Parent: parent, All: mode != nil && mode.All != nil})
			}, func(g *schedulingv1alpha3.CompositePodGroup) { set(g, true, nil) }))
	}
	if err != nil {
		return fmt.Errorf("watching groups of Kubernetes: %w", err)
	}
	return nil
}

// plant updates the forest with a native group that was added, changed or deleted.
func (k *ownerKind) plant(ctx context.Context, object *ownerObject, gone bool) {
	if k.Kind != read.NativeGroup && k.Kind != read.CompositeGroup || k.owners.refile == nil {
		return
	}
	o, node := k.owners, object.states[""].Node
	current := &node
	if gone {
		current = nil
	}
	changes, roots := o.trees.Set(grouptree.Key{Namespace: object.Namespace, Name: object.Name,
		Composite: k.Kind == read.CompositeGroup}, current)
	o.mu.Lock()
	if node.Parent != "" {
		o.kindOf(ctx, read.CompositeGroup)
	}
	for _, root := range roots {
		o.queue.Add(gangOf(object.Namespace, root, ""))
	}
	for _, c := range changes {
		o.queue.Add(gangOf(object.Namespace, "", c.PodGroup))
	}
	o.mu.Unlock()
	for _, c := range changes {
		from := gangOf(object.Namespace, c.From, c.PodGroup)
		if c.WasBasic {
			from.Name = ""
		}
		if c.From != c.To || c.Told {
			o.refile(from, c.PodGroup)
		}
	}
}

// gangOf is the gang of the pods of a native PodGroup: its tree, or the PodGroup if there is no root.
func gangOf(namespace, root, podGroup string) gang.ID {
	owner := read.Owner{Kind: read.NativeGroup, Namespace: namespace, Name: podGroup}
	if root != "" {
		owner.Kind, owner.Name = read.CompositeGroup, root
	}
	return owner.Gang()
}

// inTree completes the state of a native group with that of its tree. The lock is held.
func (o *Owners) inTree(owner read.Owner, s read.OwnerState) read.OwnerState {
	switch {
	case s.Why != "" || o.refile == nil:
	case owner.Kind == read.NativeGroup && s.Node.Parent != "":
		why, wrong := o.trees.Why(owner.Namespace, owner.Name)
		k := o.kinds[read.CompositeGroup]
		switch {
		case wrong:
			s.Why = why
		case k != nil && k.unread() != "":
			return waiting(s, k.unread())
		case why != "":
			return waiting(s, why)
		default:
			return waiting(s, "its pods are in the gang of CompositePodGroup "+o.trees.RootOf(owner.Namespace, owner.Name))
		}
	case owner.Kind == read.CompositeGroup:
		k := o.kinds[read.NativeGroup]
		if k == nil || k.unread() != "" {
			return waiting(s, "waiting for podgroups.scheduling.k8s.io to be read")
		}
		t := o.trees.Tree(owner.Namespace, owner.Name)
		if s.Unkept, s.Class = o.unkept(owner, t.Keys), ""; t.Why != "" {
			return waiting(s, t.Why)
		}
		if s.Says[wellknown.GroupsKey] == "" {
			s.Says = maps.Clone(s.Says)
			s.Says[wellknown.GroupsKey] = grouptree.EncodeGroups(t.Groups)
			s.Says[wellknown.GroupLabelKey], s.Says[wellknown.RoleLabelKey] = grouptree.PodField, grouptree.PodField
		}
		spec, err := read.Spec(s.PodGroup(owner.Gang()), 0)
		if err != nil {
			s.Why = fmt.Sprintf("%s cannot be read as a tree: %s", owner.Object(), err)
			return s
		}
		s.Minimum = spec.Minimum.Total
	}
	return s
}

// waiting is the state of a group whose tree is not complete yet. Without a reference to the object it causes no event.
func waiting(s read.OwnerState, why string) read.OwnerState {
	s.APIVersion, s.UID, s.Why = "", "", why
	return s
}

// unkept is what the objects of a tree declare and Berth does not follow, without repetitions. The lock is held.
func (o *Owners) unkept(of read.Owner, keys []grouptree.Key) string {
	said := map[string][]grouptree.Key{}
	for _, key := range keys {
		state := o.stateOf(key)
		if text := state.NotKept(&of); text != "" {
			said[text] = append(said[text], key)
		}
	}
	texts := make([]string, 0, len(said))
	for text, by := range said {
		more := ""
		if len(by) > 1 {
			more = fmt.Sprintf(" and %d more", len(by)-1)
		}
		texts = append(texts, fmt.Sprintf("%s%s: %s", by[0], more, text))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

// stateOf returns the state of an object of a tree. The lock is held.
func (o *Owners) stateOf(key grouptree.Key) read.OwnerState {
	k := o.kinds[kindOf(key)]
	if k == nil {
		return read.OwnerState{}
	}
	return k.states(read.Owner{Namespace: key.Namespace, Name: key.Name})[""]
}

func kindOf(key grouptree.Key) string {
	if key.Composite {
		return read.CompositeGroup
	}
	return read.NativeGroup
}

// Together returns the topmost native group around the pod that may be disrupted only as a whole, empty for none. whole
// is set if that is all of the pod's gang.
func (o *Owners) Together(pod *v1.Pod) (with string, whole bool) {
	name := read.NativeName(pod)
	if name == "" {
		return "", false
	}
	unit, whole, has := o.trees.Unit(pod.Namespace, name)
	if !has {
		return "", false
	}
	return unit.String(), whole
}

// settledIn counts, by PodGroup, the members of a tree of native groups that have a node or have succeeded.
func settledIn(group *schedulingv1alpha1.PodGroup, members []*v1.Pod) map[string]int {
	if group.Annotations[wellknown.GroupLabelKey] != grouptree.PodField {
		return nil
	}
	settled := map[string]int{}
	for _, pod := range members {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodFailed {
			settled[read.NativeName(pod)]++
		}
	}
	return settled
}

// partsOfTree returns the objects of a tree, each with its progress: it has started if enough of its parts have. The
// lock is held.
func (o *Owners) partsOfTree(g *followedGang, p *progress) []part {
	root := grouptree.Key{Namespace: g.owner.Namespace, Name: g.owner.Name, Composite: true}
	var parts []part
	var look func(key grouptree.Key) bool
	look = func(key grouptree.Key) bool {
		node, in := o.trees.Under(key)
		has, what := p.settled[key.Name], "pod"
		if key.Composite {
			has, what = 0, "group"
			for _, one := range in {
				if look(one) {
					has++
				}
			}
		}
		state := o.stateOf(key)
		if state.UID == "" {
			return has >= node.Least
		}
		of := *p
		switch {
		case has >= node.Least || p.hasStarted():
			of.step, of.why = unschedulable, fmt.Sprintf("%d of the %s that it needs %s started", has,
				plural.Of(node.Least, what), plural.Choose(has, "has", "have"))
			if has >= node.Least {
				of.step = scheduled
			}
		case key != root:
			of.why = "it starts with the other groups of " + root.String() + ", which says what they wait for"
		}
		kind := o.kinds[kindOf(key)]
		parts = append(parts, part{kind: kind, progress: &of, key: key, text: fmt.Sprint(state.UID, of.step, of.why),
			about: &v1.ObjectReference{APIVersion: state.APIVersion, Kind: kind.Object, Namespace: key.Namespace,
				Name: key.Name, UID: state.UID}})
		return has >= node.Least
	}
	look(root)
	return parts
}
