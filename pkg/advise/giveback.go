package advise

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// GiveBack is a node that could be given back.
type GiveBack struct {
	Node string `json:"node"`
	// PriceMicroDollarsPerHour is what that saves, 0 if it is not known.
	PriceMicroDollarsPerHour int64 `json:"priceMicroDollarsPerHour"`
	// Plan moves the node's pods; it has no moves if the node is not in use.
	Plan Plan `json:"plan"`
}

// spare is a node that may be given back.
type spare struct {
	node  *v1.Node
	price int64
	gpus  int
	units []*unit
}

// findSpares keeps the nodes whose pods may all move and fit other nodes: unused nodes first, then the most expensive.
// A node that waiting work could use is not kept.
func (s *search) findSpares(w *world, v *view) {
	demand, wanted := v.demand(s), 0
	taken := map[string]bool{}
	for _, pod := range s.pods {
		if s.began[keyOf(pod)] {
			taken[w.node(keyOf(pod))] = true
		}
	}
	for _, node := range s.nodes {
		c := spare{node: node}
		if !podview.Removable(node) || podview.Leaving(node) || taken[node.Name] || s.over() {
			continue
		}
		fits := true
		for _, u := range s.units[node.Name] {
			if podview.BelongsToNode(u.Pods[0]) {
				continue
			}
			if fits = fits && u.Fixed == "" && v.canMove(u); !fits {
				break
			}
			c.units = append(c.units, u)
		}
		if !fits {
			continue
		}
		if v.wanted(demand, c) {
			wanted++
			continue
		}
		perHour, _ := s.priceOf(node)
		read, _ := s.keys.ReadGPUNode(node)
		c.price, c.gpus = int64(perHour), read.GPUs()
		s.spares = append(s.spares, c)
	}
	if wanted > 0 {
		s.advice.Notes = append(s.advice.Notes,
			fmt.Sprintf("%s could be given back and %s not offered: work that waits could run there",
				plural.Of(wanted, "node"), plural.Choose(wanted, "is", "are")))
	}
	pods := func(c spare) (n int) {
		for _, u := range c.units {
			n += len(u.Pods)
		}
		return n
	}
	slices.SortStableFunc(s.spares, func(a, b spare) int {
		return cmp.Or(cmp.Compare(min(pods(a), 1), min(pods(b), 1)), cmp.Compare(b.price, a.price),
			cmp.Compare(b.gpus, a.gpus),
			cmp.Compare(pods(a), pods(b)), cmp.Compare(a.node.Name, b.node.Name))
	})
}

// mostDemand is how many kinds of pods that wait are asked about for each node that might be given back.
const mostDemand = 64

// demand are the kinds of pods that wait for a node, each as a single one.
func (v *view) demand(s *search) []*class {
	var classes []*class
	seen := map[string]bool{}
	for _, u := range s.waiting {
		if u.Held != "" {
			continue
		}
		fresh := *u
		fresh.Pods = nil
		for _, pod := range u.Pods {
			if key := gangview.Member(alone(u, pod), gangview.Membership{}, nil, true).Class; !seen[key] {
				seen[key] = true
				fresh.Pods = append(fresh.Pods, pod)
			}
		}
		if len(fresh.Pods) == 0 {
			continue
		}
		if len(classes) >= mostDemand || s.over() {
			s.limit("of the work that waits, %s were compared with nodes to give back", plural.Of(len(classes), "kind")+
				" of pods")
			break
		}
		classes = append(classes, v.classes(s, &fresh)...)
	}
	return classes
}

// wanted says whether a pod that waits could run on the node if all that may leave it was gone. Whether it could
// elsewhere is not asked: where capacity is short, none of it is given away.
func (v *view) wanted(demand []*class, c spare) bool {
	at := slices.IndexFunc(v.infos, func(info fwk.NodeInfo) bool { return info.Node().Name == c.node.Name })
	return at >= 0 && slices.ContainsFunc(demand, func(of *class) bool {
		if !of.mayBeOn(c.node.Name) {
			return false
		}
		t := of.newTrial(context.Background(), v.devices, v.infos[at])
		return t != nil && t.without(c.units).accepts()
	})
}

// giveBack takes one node after the other away, each time from what the one before has left. No pod is moved twice, and
// none for as long as there are nodes that nothing uses.
func (s *search) giveBack() error {
	objects, idle, emptied, tried, more := s.Objects, 0, 0, 0, false
	moved, received := map[Unit]bool{}, map[string]bool{}
	defer func() {
		if more {
			s.limit("of nodes to give back, %d that nothing uses and %d in use are shown, and there may be more", idle, emptied)
		}
	}()
	for _, c := range s.spares {
		// What moved with a gang has left the node.
		c.units = slices.DeleteFunc(slices.Clone(c.units), func(u *unit) bool { return moved[nameOf(u)] })
		switch {
		case len(c.units) == 0 && idle == s.Most, len(c.units) > 0 && (emptied == s.Most || idle == s.Most):
			more = true
			continue
		case received[c.node.Name]:
			continue
		case s.over() || tried == mostTries:
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
		if len(c.units) == 0 {
			idle++
		} else {
			emptied++
		}
		objects = left
		for _, m := range found.Plan.Moves {
			moved[m.Unit] = true
			for _, pod := range m.Pods {
				received[pod.To] = true
			}
		}
		s.advice.GiveBack = append(s.advice.GiveBack, *found)
	}
	return nil
}

// empty moves everything from a node and returns the cluster without it, nil if a pod finds no other place.
func (s *search) empty(c spare, objects []runtime.Object) (found *GiveBack, left []runtime.Object, err error) {
	name := c.node.Name
	err = s.try(objects, func(w *world) error {
		if err := w.cordon(name, true); err != nil {
			return err
		}
		plan := Plan{Cordon: []string{name}}
		for _, u := range c.units {
			now := *u
			now.Pods = nil
			for _, pod := range u.Pods {
				if p := w.pod(keyOf(pod)); p != nil {
					now.Pods = append(now.Pods, p)
				}
			}
			if ok, err := w.move(now.names()); !ok || err != nil {
				return err
			}
			plan.Moves = append(plan.Moves, moveOf(&now, w))
		}
		if w.rest(nil); s.over() {
			return nil
		}
		for _, pod := range s.pods {
			started := pod.Spec.NodeName != "" || s.began[keyOf(pod)]
			if started && !s.lost[keyOf(pod)] && w.node(keyOf(pod)) == "" && !podview.Finished(pod) && w.pod(keyOf(pod)) != nil {
				return nil // a pod that ran before waits now
			}
		}
		if s.newlyLost(w) != "" {
			return nil
		}
		found = &GiveBack{Node: name, PriceMicroDollarsPerHour: c.price, Plan: plan}
		left = w.without(name, objects)
		return nil
	})
	return found, left, err
}

// without are the objects as they are now, without a node and what belongs to it; an empty name leaves none out.
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
			now = w.api.Get(claimResource, key{Namespace: obj.Namespace, Name: obj.Name})
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
