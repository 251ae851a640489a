package advise

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/wellknown"
)

// Holds runs what is left of a plan in the cluster of the question, and returns an error that says why if the plan does
// not hold there: what has changed since it was made may have taken the room that replacements need, or that it makes.
//
// Pods that are ending count as gone: the ones that the plan has evicted keep their nodes for as long as they take to
// end.
func Holds(ctx context.Context, q Question, plan *Plan) error {
	q.Objects = slices.DeleteFunc(slices.Clone(q.Objects), func(obj runtime.Object) bool {
		pod, ok := obj.(*v1.Pod)
		return ok && pod.DeletionTimestamp != nil
	})
	for i, obj := range q.Objects {
		if node, ok := obj.(*v1.Node); ok && node.Spec.Unschedulable && slices.Contains(plan.Cordon, node.Name) {
			q.Objects[i] = closedFor(node, plan.For)
		}
	}
	s, err := newSearch(ctx, q)
	if err != nil {
		return err
	}
	units, err := s.planned(plan)
	if err != nil {
		return err
	}
	why := ""
	err = s.try(s.Objects, func(w *world) error {
		s.lost = w.lost()
		for _, m := range plan.Moves {
			for _, pod := range m.Pods {
				if name := (key{Namespace: m.Namespace, Name: pod.Name}); s.lost[name] {
					why = fmt.Sprintf("the scheduler already evicts pod %s", name)
					return nil
				}
			}
		}
		var err error
		why, err = s.carry(w, plan, units, func() bool {
			for _, start := range plan.Starts {
				if w.node(key{Namespace: start.Namespace, Name: start.Name}) == "" {
					return false
				}
			}
			return true
		})
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("running the rest of the plan: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("running the rest of the plan: %w", context.Cause(ctx))
	case why != "":
		return errors.New("the plan does not hold any more in the cluster as it is now: " + why)
	}
	return nil
}

// closedFor is a node that is cordoned for the plan already, as the run cordons one: with the mark, which a snapshot
// leaves out, and without the taint of a controller that does not run there and would not take it away again.
func closedFor(node *v1.Node, u Unit) *v1.Node {
	node = node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[wellknown.CordonedForKey] = u.Mark()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
		func(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable })
	return node
}

// planned are the units of a plan as the cluster has them.
func (s *search) planned(plan *Plan) ([]*unit, error) {
	pods := map[key]*v1.Pod{}
	for _, pod := range s.pods {
		pods[keyOf(pod)] = pod
	}
	var units []*unit
	for _, m := range plan.Moves {
		u := &unit{Kind: m.Kind, Namespace: m.Namespace, Name: m.Name, Priority: m.Priority}
		for _, p := range m.Pods {
			pod := pods[key{Namespace: m.Namespace, Name: p.Name}]
			if pod == nil || string(pod.UID) != p.UID || pod.Spec.NodeName != p.From {
				return nil, fmt.Errorf("pod %s/%s is not on %s any more", m.Namespace, p.Name, p.From)
			}
			u.Pods = append(u.Pods, pod)
		}
		units = append(units, u)
	}
	return units, nil
}
