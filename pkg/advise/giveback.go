package advise

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// GiveBack is a node that could be given back.
type GiveBack struct {
	Node string `json:"node"`
	// PriceMicroDollarsPerHour is the saving, 0 if it is unknown.
	PriceMicroDollarsPerHour int64 `json:"priceMicroDollarsPerHour"`
	// Plan moves the node's pods; it has no moves if the node is not in use.
	Plan Plan `json:"plan"`
}

// spare is a node that may be given back.
type spare struct {
	node  *v1.Node
	price int64
	gpus  int
	// pods have to move.
	pods []*runningPod
}

// findSpares finds the nodes whose pods may all move and fit other nodes: unused nodes first, then the most expensive.
// It leaves out nodes that pending work could use.
func (s *search) findSpares(w *world, v *view) {
	demand, wanted := s.demand(v), 0
	taken := map[string]bool{}
	for name := range s.began {
		taken[w.node(name)] = true
	}
	for _, node := range s.nodes {
		if !podview.Removable(node) || podview.Leaving(node) || taken[node.Name] {
			continue
		}
		pods := s.leaving(node.Name)
		if slices.ContainsFunc(pods, func(p *runningPod) bool { return p.fixed != "" || p.stuck }) ||
			len(s.overBudget(pods)) > 0 {
			continue
		}
		if v.wanted(demand, node.Name, pods) {
			wanted++
			continue
		}
		perHour, _ := s.priceOf(node)
		read, _ := s.keys.ReadGPUNode(node)
		s.spares = append(s.spares, spare{node, int64(perHour), read.GPUs(), pods})
	}
	if wanted > 0 {
		s.advice.Notes = append(s.advice.Notes,
			fmt.Sprintf("%s could be given back and %s not offered: work that waits could run there",
				plural.Of(wanted, "node"), plural.Choose(wanted, "is", "are")))
	}
	slices.SortStableFunc(s.spares, func(a, b spare) int {
		return cmp.Or(cmp.Compare(min(len(a.pods), 1), min(len(b.pods), 1)), cmp.Compare(b.price, a.price),
			cmp.Compare(b.gpus, a.gpus), cmp.Compare(len(a.pods), len(b.pods)), cmp.Compare(a.node.Name, b.node.Name))
	})
}

// leaving are the pods that have to move to empty a node. A gang moves as a whole, unless enough members run elsewhere.
func (s *search) leaving(node string) []*runningPod {
	leaves := map[*runningPod]bool{}
	for _, pod := range s.onNode[node] {
		if podview.BelongsToNode(pod.Pod) {
			continue
		}
		leaves[pod] = true
		members, here := s.gangs[pod.gang], 0
		for _, member := range members {
			if member.Spec.NodeName == node {
				here++
			}
		}
		if pod.together || pod.minimum == 0 || len(members)-here < pod.minimum {
			for _, member := range members {
				leaves[member] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(leaves), compareLoss)
}

// mostDemand is how many classes of pending pods are compared with each node that might be given back.
const mostDemand = 64

// demand are the classes of pending pods, each as a single pod.
func (s *search) demand(v *view) []*class {
	var classes []*class
	seen := map[string]bool{}
	for _, u := range s.waiting {
		if u.Untried != "" {
			continue
		}
		for _, pod := range u.Pods {
			c := v.class(alone(s.devices.inPlaceOfClaim(pod)))
			if seen[c.name] || c.fw == nil {
				continue
			}
			if len(classes) == mostDemand {
				s.limit("of the work that waits, %s were compared with nodes to give back", plural.Of(len(classes), "kind")+
					" of pods")
				return classes
			}
			seen[c.name] = true
			classes = append(classes, c)
		}
	}
	return classes
}

// wanted reports whether a pending pod could run on the node without the pods that would move. It does not matter
// whether the pod could also run elsewhere: while capacity is short, no node is given back.
func (v *view) wanted(demand []*class, node string, leaving []*runningPod) bool {
	at := slices.IndexFunc(v.infos, func(info fwk.NodeInfo) bool { return info.Node().Name == node })
	return at >= 0 && slices.ContainsFunc(demand, func(of *class) bool { return of.accepted(v.infos[at], leaving) })
}

// giveBack removes one node after the other from the cluster. No pod is moved twice, and none while there are unused
// nodes.
func (s *search) giveBack() error {
	objects, idle, emptied, tried, more := s.Objects, 0, 0, 0, false
	moved, received := map[key]bool{}, map[string]bool{}
	defer func() {
		if more {
			s.limit("of nodes to give back, %d that nothing uses and %d in use are shown, and there may be more", idle, emptied)
		}
	}()
	for _, c := range s.spares {
		// Some pods may have moved with their gang.
		c.pods = slices.DeleteFunc(slices.Clone(c.pods), func(p *runningPod) bool { return moved[keyOf(p.Pod)] })
		switch {
		case len(c.pods) == 0 && idle == s.Most, len(c.pods) > 0 && (emptied == s.Most || idle == s.Most):
			more = true
			continue
		case received[c.node.Name]:
			continue
		case tried == mostTries:
			s.limit("of %s that might be given back, %d were tried", plural.Of(len(s.spares), "node"), tried)
			return nil
		}
		tried++
		s.say("trying to give node %s back", c.node.Name)
		found, left, err := s.empty(c, objects)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		if len(c.pods) == 0 {
			idle++
		} else {
			emptied++
		}
		objects = left
		for _, pod := range c.pods {
			moved[keyOf(pod.Pod)] = true
		}
		for _, m := range found.Plan.Moves {
			for _, pod := range m.Pods {
				received[pod.To] = true
			}
		}
		s.advice.GiveBack = append(s.advice.GiveBack, *found)
	}
	return nil
}

// empty moves all pods from a node and returns the cluster without it, nil if a pod finds no other node.
func (s *search) empty(c spare, objects []runtime.Object) (found *GiveBack, left []runtime.Object, err error) {
	name := c.node.Name
	err = s.tryTies(objects, func(w *world) (bool, error) {
		before := found
		found = nil
		if err := w.cordon(name, true); err != nil {
			return false, err
		}
		plan := Plan{Cordon: []string{name}}
		for _, m := range movesOf(c.pods) {
			if ok, err := w.move(m.names()); !ok || err != nil {
				return false, err
			}
			plan.Moves = append(plan.Moves, m.in(w))
		}
		w.rest(nil)
		for _, pod := range s.pods {
			started := pod.Spec.NodeName != "" || s.began[keyOf(pod)]
			if started && !s.lost[keyOf(pod)] && w.node(keyOf(pod)) == "" && !podview.Finished(pod) && w.pod(keyOf(pod)) != nil {
				return false, nil // a pod that ran before waits now
			}
		}
		if s.newlyLost(w) != "" {
			return false, nil
		}
		if found = before; found == nil {
			found = &GiveBack{Node: name, PriceMicroDollarsPerHour: c.price, Plan: plan}
			left = w.without(name, objects)
		}
		return true, nil
	})
	return found, left, err
}

// without are the current objects without a node and what belongs to it; an empty name leaves out nothing.
func (w *world) without(name string, objects []runtime.Object) []runtime.Object {
	var left []runtime.Object
	for _, obj := range objects {
		var now runtime.Object
		switch obj := obj.(type) {
		case *v1.Node:
			if obj.Name != name {
				now = obj
			}
		case *v1.Pod:
			if pod := w.pod(keyOf(obj)); pod != nil && (name == "" || pod.Spec.NodeName != name) {
				now = pod
			}
		case *resourcev1.ResourceClaim:
			now = w.API.Get(claimResource, key{Namespace: obj.Namespace, Name: obj.Name})
		case *resourcev1.ResourceSlice:
			if obj.Spec.NodeName == nil || *obj.Spec.NodeName != name {
				now = obj
			}
		default:
			now = obj
		}
		if now != nil {
			left = append(left, now)
		}
	}
	return left
}
