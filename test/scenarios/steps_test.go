package scenarios_test

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	realbox "berth.dev/berth/test/harness/box"
)

// steps are the commands that change something; README.md documents them.
var steps = map[string]func(*world, context.Context, *line) error{
	"nodes":           (*world).doNodes,
	"priority":        (*world).doPriority,
	"group":           (*world).doGroup,
	"edit":            (*world).doEdit,
	"refused":         (*world).doRefused,
	"pods":            (*world).doPods,
	"crowd":           (*world).doCrowd,
	"count":           (*world).doCount,
	"update":          (*world).doUpdate,
	"later":           (*world).doLater,
	"relabel":         (*world).doRelabel,
	"delete":          (*world).doDelete,
	"ungate":          (*world).doUngate,
	"finish":          (*world).doFinish,
	"budget":          (*world).doBudget,
	"kill":            (*world).doKill,
	"away":            (*world).doAway,
	"alone":           func(*world, context.Context, *line) error { return nil },
	"both-gates":      func(*world, context.Context, *line) error { return nil },
	"real-only":       func(*world, context.Context, *line) error { return nil },
	"virtual-only":    func(*world, context.Context, *line) error { return nil },
	"partial":         (*world).doPartial,
	"whole":           (*world).doWhole,
	"patience":        (*world).doPatience,
	"terminate-after": (*world).doTerminateAfter,
	"cordon":          (*world).doCordon,
	"uncordon":        (*world).doCordon,
	"taint":           (*world).doTaint,
	"untaint":         (*world).doTaint,
	"break":           (*world).doBreak,
	"annotate":        (*world).doAnnotate,
	"join":            (*world).doJoin,
	"leave":           (*world).doJoin,
	"fail":            (*world).doFinish,
	"revive":          (*world).doFinish,
	"devices":         (*world).doDevices,
	"claim":           (*world).doClaim,
	"disks":           (*world).doDisks,
	"pool":            (*world).doPool,
	"volume":          (*world).doVolume,
	"replicaset":      (*world).doReplicaSet,
	"statefulset":     (*world).doStatefulSet,
	"job":             (*world).doJob,
	"scale":           (*world).doScale,
	"stream":          (*world).doStream,
	"stop":            (*world).doStop,
	"kind":            (*world).doKind,
	"object":          (*world).doObject,
	"patch":           (*world).doPatch,
	"mark":            (*world).doMark,
	"native-group":    (*world).doNativeGroup,
	"composite-group": (*world).doCompositeGroup,
}

func (w *world) doNodes(ctx context.Context, l *line) error {
	n, err := l.int(0)
	if err != nil {
		return err
	}
	for i := range n {
		labels := map[string]string{scenarioLabel: w.name}
		for key, values := range l.with("label:") {
			all := strings.Split(values, ",")
			labels[key] = all[i%len(all)]
		}
		var taints []v1.Taint
		if key := l.option("taint", ""); key != "" {
			taints = []v1.Taint{{Key: key, Effect: v1.TaintEffectNoSchedule}}
		}
		have := v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse(l.option("cpu", "64")),
			v1.ResourceMemory: resource.MustParse(l.option("memory", "256Gi")),
			v1.ResourcePods:   resource.MustParse("110"),
			"nvidia.com/gpu":  resource.MustParse(l.option("gpu", "8")),
		}
		for name, amount := range l.with("has:") {
			have[v1.ResourceName(name)] = resource.MustParse(amount)
		}
		node := &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", w.name, l.arg(1), i), Labels: labels,
				Annotations: l.with("annotation:")},
			Spec: v1.NodeSpec{Taints: taints, Unschedulable: l.option("cordoned", "") != ""},
			Status: v1.NodeStatus{Capacity: have, Allocatable: have,
				Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
		}
		node.Labels[v1.LabelHostname] = node.Name
		if _, err := w.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) doPriority(ctx context.Context, l *line) error {
	value, err := l.int(1)
	if err != nil {
		return err
	}
	class := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + l.arg(0), Labels: map[string]string{scenarioLabel: w.name}},
		Value:      int32(value)}
	if l.option("preempts", "") == "never" {
		class.PreemptionPolicy = ptr.To(v1.PreemptNever)
	}
	return realbox.CreatePriorityClass(ctx, w.client, class)
}

func (w *world) doEdit(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	minMember, err := strconv.Atoi(l.option("min", ""))
	if err != nil {
		return err
	}
	w.expectMinimum(namespace+"/"+name, minMember)
	_, err = w.dynamic.Resource(podGroups).Namespace(namespace).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, minMember), metav1.PatchOptions{})
	return err
}

// doRelabel changes the minimum that pods of the older form carry.
func (w *world) doRelabel(ctx context.Context, l *line) error {
	namespace, group := w.locate(l.arg(0))
	minimum, err := strconv.Atoi(l.option("min", ""))
	if err != nil {
		return err
	}
	pods, err := w.some(ctx, l.arg(0), 0, func(*v1.Pod) bool { return true })
	if err != nil {
		return err
	}
	w.expectMinimum(namespace+"/"+group, minimum)
	for _, p := range pods {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, oldMinimumLabel, minimum), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// some returns n pods of the set as they are now for which want holds, the oldest names first.
func (w *world) some(ctx context.Context, set string, n int, want func(*v1.Pod) bool) ([]*v1.Pod, error) {
	list, err := w.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: scenarioLabel + "=" + w.name + "," + setLabel + "=" + setOf(set)})
	if err != nil {
		return nil, err
	}
	var pods []*v1.Pod
	for i := range list.Items {
		if p := &list.Items[i]; want(p) && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	sort.Slice(pods, func(i, j int) bool { return pods[i].Name < pods[j].Name })
	if n == 0 {
		n = len(pods)
	}
	if len(pods) < n {
		return nil, fmt.Errorf("set %s has only %d such pods", set, len(pods))
	}
	return pods[:n], nil
}

func (w *world) doDelete(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(1))
	switch l.arg(0) {
	case "group":
		if err := w.dynamic.Resource(podGroups).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return w.untilGone(ctx, func() error { _, err := w.group(l.arg(1)); return err })
	case "object":
		objects, name, err := w.objects(ctx, l.arg(1), l.arg(2))
		if err != nil {
			return err
		}
		return objects.Delete(ctx, name, metav1.DeleteOptions{})
	case "node":
		// Its pods go last, or others might be bound in their place before the scheduler hears of the node.
		if err := w.client.CoreV1().Nodes().Delete(ctx, w.name+"-"+name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		for _, p := range w.everyPod() {
			if p.Spec.NodeName == w.name+"-"+name {
				w.forget(p)
				_ = w.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name,
					metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
			}
		}
		return w.untilGone(ctx, func() error { _, err := w.nodes.Get(w.name + "-" + name); return err })
	case "pods":
		n := 0
		if l.arg(2) != "" {
			var err error
			if n, err = l.int(2); err != nil {
				return err
			}
		}
		pods, err := w.some(ctx, l.arg(1), n, func(*v1.Pod) bool { return true })
		if err != nil {
			return err
		}
		var at metav1.DeleteOptions
		if l.option("graceful", "") == "" {
			at.GracePeriodSeconds = ptr.To[int64](0)
		}
		for _, p := range pods {
			w.forget(p)
			if err := w.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, at); err != nil {
				return err
			}
		}
		if at.GracePeriodSeconds == nil {
			return nil
		}
		// What was deleted here must not be counted as existing by the next command.
		return w.eventually(ctx, 10*time.Second, func() error {
			for _, p := range pods {
				if w.pod(p) != nil {
					return fmt.Errorf("pod %s still exists", p.Name)
				}
			}
			return nil
		})
	}
	return fmt.Errorf("line %d: delete what?", l.number)
}

func (w *world) everyPod() []*v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pods []*v1.Pod
	for _, p := range w.pods {
		pods = append(pods, p)
	}
	return pods
}

func (w *world) forget(p *v1.Pod) {
	w.mu.Lock()
	w.mine[p.UID] = true
	w.mu.Unlock()
}

func (w *world) doUngate(ctx context.Context, l *line) error {
	pods, err := w.some(ctx, l.arg(0), 0, func(p *v1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 })
	if err != nil {
		return err
	}
	for _, p := range pods {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.JSONPatchType,
			[]byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) doBudget(ctx context.Context, l *line) error {
	atLeast, err := strconv.Atoi(l.option("available", ""))
	if err != nil {
		return err
	}
	namespace, _ := w.locate(l.arg(0))
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	selector := ofSet(setOf(l.arg(0)))
	if l.option("selector", "") == "everything" {
		selector = &metav1.LabelSelector{}
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: setOf(l.arg(0)), Namespace: namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(int32(atLeast))),
			Selector: selector},
	}
	made, err := w.client.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx, budget, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = w.client.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, budget.Name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	// No controller runs here, so the scenario says itself how many disruptions are left.
	allowed, err := strconv.Atoi(l.option("allowed", "0"))
	if err != nil {
		return err
	}
	made.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(allowed),
		ObservedGeneration: made.Generation}
	_, err = w.client.PolicyV1().PodDisruptionBudgets(namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

func (w *world) doPartial(_ context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exempt[namespace+"/"+name] = true
	return nil
}

func (w *world) doWhole(_ context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.exempt, namespace+"/"+name)
	return nil
}
