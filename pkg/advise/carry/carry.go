// Package carry carries a plan of package advise out in a cluster: it cordons the nodes that pods leave, evicts unit
// after unit, waits for the replacements, and stops as soon as the cluster is not as the plan has it.
//
// The command berth advise --evict calls it, and gives it what runs the rest of the plan again. It decides nothing:
// what moves, and in which order, is the plan's.
package carry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/pkg/advise"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/wellknown"
)

// openWithin is how long it may take to open the nodes again, also after an interruption.
const openWithin = 20 * time.Second

// Carrier carries plans out in a cluster.
type Carrier struct {
	Client kubernetes.Interface
	// Within is how long each step may take: that replacements are bound, and that what waits starts.
	Within time.Duration
	// Poll is how often the cluster is asked.
	Poll time.Duration
	// Holds runs what is left of the plan on the cluster as it is, and returns an error if that does not work.
	Holds func(ctx context.Context, rest *advise.Plan) error
	// Say is told each step.
	Say func(text string)
}

// Carry evicts the plan's units one by one. It stops with an error as soon as the cluster is not as the plan has it;
// nodes that were cordoned are opened again in any case.
func (c *Carrier) Carry(ctx context.Context, plan *advise.Plan) (err error) {
	if err := c.check(ctx, plan, 0); err != nil {
		return err
	}
	closed := true
	defer func() { err = errors.Join(err, c.change(ctx, plan, closed, true)) }()
	for _, name := range plan.Cordon {
		if err := c.close(ctx, name, plan.For.Mark()); err != nil {
			return err
		}
	}
	for i := range plan.Moves {
		if i > 0 {
			if started, err := c.started(ctx, plan); err != nil || started {
				return err
			}
			if err := c.check(ctx, plan, i); err != nil {
				return err
			}
		}
		if err := c.move(ctx, plan, i); err != nil {
			return err
		}
	}
	if err := c.change(ctx, plan, true, false); err != nil {
		return err
	}
	closed = false
	return c.await(ctx, "what waits has not started, although all of the plan was carried out",
		func(ctx context.Context) (bool, error) {
			return c.started(ctx, plan)
		})
}

func (c *Carrier) close(ctx context.Context, name, mark string) error {
	c.Say("cordoning node " + name)
	patch := []byte(`{"metadata":{"annotations":{"` + wellknown.CordonedForKey + `":"` + mark +
		`"}},"spec":{"unschedulable":true}}`)
	if _, err := c.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cordoning node %s: %w", name, err)
	}
	return nil
}

// change opens the nodes that were cordoned here, or takes their mark away, or both. The mark stays until what waits
// has started: the scheduler keeps these nodes for it.
func (c *Carrier) change(ctx context.Context, plan *advise.Plan, open, unmark bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openWithin)
	defer cancel()
	var changes []string
	if unmark {
		changes = append(changes, `"metadata":{"annotations":{"`+wellknown.CordonedForKey+`":null}}`)
	}
	if open {
		changes = append(changes, `"spec":{"unschedulable":null}`)
	}
	patch := []byte("{" + strings.Join(changes, ",") + "}")
	var failed []error
	for _, name := range plan.Cordon {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && node.Annotations[wellknown.CordonedForKey] == "":
			continue
		case err == nil:
			if open {
				c.Say("uncordoning node " + name)
			}
			_, err = c.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf(
				"node %s may still be cordoned (kubectl uncordon %s) or have the annotation %s: %w",
				name, name, wellknown.CordonedForKey, err))
		}
	}
	return errors.Join(failed...)
}

// check compares the cluster with what the moves from there on take for granted, and runs them on it.
func (c *Carrier) check(ctx context.Context, plan *advise.Plan, from int) error {
	rest := &advise.Plan{For: plan.For, Cordon: plan.Cordon, Moves: plan.Moves[from:], Starts: plan.Starts}
	for _, name := range plan.Cordon {
		node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("node %s has gone since the plan was made", name)
		case err != nil:
			return fmt.Errorf("reading node %s: %w", name, err)
		case node.Spec.Unschedulable && node.Annotations[wellknown.CordonedForKey] == "":
			return fmt.Errorf("node %s has been cordoned by another user since the plan was made", name)
		}
	}
	for _, m := range rest.Moves {
		for _, planned := range m.Pods {
			pod, err := c.Client.CoreV1().Pods(m.Namespace).Get(ctx, planned.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err) || err == nil && string(pod.UID) != planned.UID:
				return fmt.Errorf("pod %s/%s has gone since the plan was made", m.Namespace, planned.Name)
			case err != nil:
				return fmt.Errorf("reading pod %s/%s: %w", m.Namespace, planned.Name, err)
			case pod.Spec.NodeName != planned.From:
				return fmt.Errorf("pod %s/%s is on %s and not on %s", m.Namespace, planned.Name, pod.Spec.NodeName, planned.From)
			case pod.DeletionTimestamp != nil:
				return fmt.Errorf("pod %s/%s is already ending", m.Namespace, planned.Name)
			case metav1.GetControllerOf(pod) == nil:
				return fmt.Errorf("pod %s/%s has no controller that would replace it", m.Namespace, planned.Name)
			}
		}
	}
	c.Say("running what is left of the plan on the cluster as it is now")
	return c.Holds(ctx, rest)
}

// started says whether the pods have nodes for which the plan is made. One that is gone stops the plan.
func (c *Carrier) started(ctx context.Context, plan *advise.Plan) (bool, error) {
	all := len(plan.Starts) > 0
	for _, s := range plan.Starts {
		pod, err := c.Client.CoreV1().Pods(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false, fmt.Errorf("pod %s/%s, for which the plan is made, has gone", s.Namespace, s.Name)
		case err != nil:
			return false, fmt.Errorf("reading pod %s/%s: %w", s.Namespace, s.Name, err)
		case pod.Spec.NodeName == "":
			all = false
		}
	}
	if all {
		for _, s := range plan.Starts {
			pod, err := c.Client.CoreV1().Pods(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
			if err == nil {
				c.Say(fmt.Sprintf("pod %s/%s has started on %s", s.Namespace, s.Name, pod.Spec.NodeName))
			}
		}
	}
	return all || len(plan.Starts) == 0, nil
}

// move evicts one unit and waits until each of its pods has been replaced.
func (c *Carrier) move(ctx context.Context, plan *advise.Plan, at int) error {
	m := plan.Moves[at]
	known, owners := map[types.UID]bool{}, map[types.UID]int{}
	pods, err := c.Client.CoreV1().Pods(m.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		known[pod.UID] = true
		if slices.ContainsFunc(m.Pods, func(p advise.MovedPod) bool { return p.UID == string(pod.UID) }) {
			if owner := metav1.GetControllerOf(pod); owner != nil {
				owners[owner.UID]++
			}
		}
	}
	for i, pod := range m.Pods {
		c.Say(fmt.Sprintf("evicting pod %s/%s from %s", m.Namespace, pod.Name, pod.From))
		uid := types.UID(pod.UID)
		err := c.Client.PolicyV1().Evictions(m.Namespace).Evict(ctx,
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: pod.Name},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}})
		if err != nil {
			return fmt.Errorf("evicting pod %s/%s, after %s of %s: %w", m.Namespace, pod.Name, plural.Of(i, "pod"), m.Unit,
				refusal(err))
		}
	}
	var bound []*v1.Pod
	err = c.await(ctx, fmt.Sprintf("the replacements of %s have not all been given a node", m.Unit),
		func(ctx context.Context) (bool, error) {
			pods, err := c.Client.CoreV1().Pods(m.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, fmt.Errorf("listing pods: %w", err)
			}
			missing := map[types.UID]int{}
			for owner, n := range owners {
				missing[owner] = n
			}
			bound = nil
			for i := range pods.Items {
				pod := &pods.Items[i]
				owner := metav1.GetControllerOf(pod)
				if owner != nil && missing[owner.UID] > 0 && !known[pod.UID] && pod.Spec.NodeName != "" &&
					pod.DeletionTimestamp == nil {
					missing[owner.UID]--
					bound = append(bound, pod)
				}
			}
			return len(bound) == len(m.Pods), nil
		})
	if err != nil {
		return err
	}
	return c.compare(plan, at, bound)
}

// refusal says why an eviction was refused.
func refusal(err error) error {
	switch {
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("a PodDisruptionBudget does not allow it now: %w", err)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("it has gone since the plan was made: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not create pods/eviction: %w", err)
	default:
		return err
	}
}

// compare says whether replacements went where the plan cannot have them: to a node that it needs for what follows.
func (c *Carrier) compare(plan *advise.Plan, at int, bound []*v1.Pod) error {
	needed := map[string]string{}
	for _, s := range plan.Starts {
		needed[s.Node] = "pod " + s.Namespace + "/" + s.Name
	}
	for _, m := range plan.Moves[at+1:] {
		for _, pod := range m.Pods {
			needed[pod.To] = "pod " + m.Namespace + "/" + pod.Name
		}
	}
	planned := map[string]int{}
	for _, pod := range plan.Moves[at].Pods {
		planned[pod.To]++
	}
	for _, pod := range bound {
		c.Say(fmt.Sprintf("pod %s/%s, the replacement, is on %s", pod.Namespace, pod.Name, pod.Spec.NodeName))
		if planned[pod.Spec.NodeName]--; planned[pod.Spec.NodeName] < 0 && needed[pod.Spec.NodeName] != "" {
			return fmt.Errorf("pod %s/%s went to %s, which the plan has for %s", pod.Namespace, pod.Name, pod.Spec.NodeName,
				needed[pod.Spec.NodeName])
		}
	}
	return nil
}

func (c *Carrier) await(ctx context.Context, late string, done func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, c.Poll, c.Within, true, done)
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("%s within %s", late, c.Within)
	}
	return err
}
