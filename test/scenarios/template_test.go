package scenarios_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// numbered replaces {i} in a value by the number of the pod in its set.
func numbered(value string, index int) string {
	return strings.ReplaceAll(value, "{i}", strconv.Itoa(index))
}

// timed replaces {now} in a value by the time.
func timed(value string) string {
	return strings.ReplaceAll(value, "{now}", time.Now().UTC().Format(time.RFC3339))
}

// named replaces {scenario} in a value by the name of the scenario's namespace, with which the names of its
// cluster-scoped objects begin.
func (w *world) named(value string) string { return strings.ReplaceAll(value, "{scenario}", w.name) }

// template returns what the line says of its pods, for the pod of this number in its set.
func (w *world) template(ctx context.Context, namespace, group, set string, index int, l *line) (v1.PodTemplateSpec,
	error) {
	spec := v1.PodSpec{
		SchedulerName:                 l.option("profile", "gang-scheduler"),
		NodeSelector:                  map[string]string{scenarioLabel: w.name},
		TerminationGracePeriodSeconds: ptr.To(w.grace(set)),
		AutomountServiceAccountToken:  ptr.To(false),
		Containers:                    []v1.Container{container(l)},
		Affinity:                      affinity(set, l),
	}
	for key, value := range l.with("select:") {
		spec.NodeSelector[key] = strings.ReplaceAll(value, "{node}", w.name+"-")
	}
	if p := l.option("priority", ""); p != "" {
		spec.PriorityClassName = w.name + "-" + p
	}
	if l.option("gated", "") != "" {
		spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "scenario.test/hold"}}
	}
	if native := l.option("native", ""); native != "" {
		spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To(native)}
	}
	if key := l.option("tolerate", ""); key != "" {
		spec.Tolerations = []v1.Toleration{{Key: key, Operator: v1.TolerationOpExists}}
	}
	if key := l.option("spread", ""); key != "" {
		spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key,
			WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: ofSet(set)}}
	}
	if pvc := l.option("mounts", ""); pvc != "" {
		mount(&spec, pvc)
	}
	if err := w.claimDevices(ctx, namespace, &spec, l); err != nil {
		return v1.PodTemplateSpec{}, err
	}
	meta := metav1.ObjectMeta{Labels: w.labels(namespace, group, set, l), Annotations: map[string]string{}}
	for key, value := range l.with("label:") {
		meta.Labels[key] = w.named(numbered(value, index))
	}
	for key, value := range l.with("annotation:") {
		meta.Annotations[key] = w.named(numbered(value, index))
	}
	return v1.PodTemplateSpec{ObjectMeta: meta, Spec: spec}, nil
}

// labels returns those by which the pods of a set are known, and are members of their group.
func (w *world) labels(namespace, group, set string, l *line) map[string]string {
	labels := map[string]string{scenarioLabel: w.name, setLabel: set}
	switch minimum := l.option("labelled", ""); {
	case minimum != "":
		labels[oldNameLabel], labels[oldMinimumLabel] = group, minimum
		if n, err := strconv.Atoi(minimum); err == nil {
			w.expectLabelled(namespace+"/"+group, n)
		}
	case l.option("alone", "") == "" && l.option("native", "") == "":
		labels[groupLabel] = group
	}
	return labels
}

func container(l *line) v1.Container {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse(l.option("cpu", "100m"))}
	limits := v1.ResourceList{}
	if gpus := l.option("gpu", ""); gpus != "" {
		requests["nvidia.com/gpu"], limits["nvidia.com/gpu"] = resource.MustParse(gpus), resource.MustParse(gpus)
	}
	for name, amount := range l.with("ask:") {
		requests[v1.ResourceName(name)], limits[v1.ResourceName(name)] = resource.MustParse(amount),
			resource.MustParse(amount)
	}
	c := v1.Container{Name: "work", Image: "work", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
	if port, err := strconv.Atoi(l.option("port", "")); err == nil {
		c.Ports = []v1.ContainerPort{{ContainerPort: int32(port), HostPort: int32(port)}}
	}
	return c
}

// affinity keeps the pods of a set apart from each other, or together with those of a set, their own unless the line
// names another.
func affinity(set string, l *line) *v1.Affinity {
	apart, together := l.option("apart", ""), l.option("together", "")
	if apart == "" && together == "" {
		return nil
	}
	a := &v1.Affinity{}
	if apart != "" {
		a.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: apart, LabelSelector: ofSet(set)}}}
	}
	if together != "" {
		a.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{TopologyKey: together, LabelSelector: ofSet(setOf(l.option("with", set)))}}}
	}
	return a
}

func ofSet(set string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{setLabel: set}}
}

// mount adds a volume that is a PersistentVolumeClaim to the pod.
func mount(spec *v1.PodSpec, claim string) {
	name := fmt.Sprintf("volume-%d", len(spec.Volumes))
	spec.Volumes = append(spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
}
