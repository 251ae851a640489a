package scenarios_test

import (
	"context"
	"strconv"

	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// doNativeGroup creates a group of the scheduler's own kind, whose pods say native=NAME.
func (w *world) doNativeGroup(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if least := l.option("min", ""); least == "" {
		group.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	} else {
		minimum, err := strconv.Atoi(least)
		if err != nil {
			return err
		}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(minimum)}
	}
	if l.option("disruption", "") == "all" {
		group.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	if p := l.option("priority", ""); p != "" {
		group.Spec.PriorityClassName = w.name + "-" + p
	}
	if key := l.option("within", ""); key != "" {
		group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
	if parent := l.option("parent", ""); parent != "" {
		group.Spec.ParentCompositePodGroupName = &parent
		group.Spec.WorkloadRef = &schedulingv1beta1.WorkloadReference{WorkloadName: "w", TemplateName: "t"}
	}
	_, err := w.client.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{})
	return err
}

// doCompositeGroup creates a group of such groups, or of its own kind, which name it as parent=NAME.
func (w *world) doCompositeGroup(ctx context.Context, l *line) error {
	namespace, name := w.locate(l.arg(0))
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	group := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	group.Spec.WorkloadRef = &schedulingv1alpha3.WorkloadReference{WorkloadName: "w", TemplateName: "t"}
	if least := l.option("min", ""); least == "" {
		group.Spec.SchedulingPolicy.Basic = &schedulingv1alpha3.CompositeBasicSchedulingPolicy{}
	} else {
		minimum, err := strconv.Atoi(least)
		if err != nil {
			return err
		}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha3.CompositeGangSchedulingPolicy{MinGroupCount: int32(minimum)}
	}
	if l.option("disruption", "") == "all" {
		group.Spec.DisruptionMode = &schedulingv1alpha3.CompositeDisruptionMode{
			All: &schedulingv1alpha3.AllCompositeDisruptionMode{}}
	}
	if parent := l.option("parent", ""); parent != "" {
		group.Spec.ParentCompositePodGroupName = &parent
	}
	if p := l.option("priority", ""); p != "" {
		group.Spec.PriorityClassName = w.name + "-" + p
	}
	if key := l.option("within", ""); key != "" {
		group.Spec.SchedulingConstraints = &schedulingv1alpha3.CompositePodGroupSchedulingConstraints{
			Topology: []schedulingv1alpha3.TopologyConstraint{{Key: key}}}
	}
	_, err := w.client.SchedulingV1alpha3().CompositePodGroups(namespace).Create(ctx, group, metav1.CreateOptions{})
	return err
}
