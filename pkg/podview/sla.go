package podview

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

// SLAClass returns the class of the pod, nil if it has none. The order may be nil.
func SLAClass(order *sla.Order, pod *v1.Pod) (class *sla.Class, bad *wellknown.BadValue) {
	name, kind, bad := NamedSLAClass(pod)
	switch {
	case bad != nil:
		return nil, bad
	case order != nil && kind == "":
		return order.ClassFor(pod.Spec.PriorityClassName), nil
	case order != nil:
		class = order.Class(name, pod.Spec.PriorityClassName)
	}
	if class == nil && kind != "" {
		bad = &wellknown.BadValue{Object: "pod", Kind: kind, Key: wellknown.SLAClassKey, Value: name,
			Allowed: slaClassesFor(order, pod)}
	}
	return class, bad
}

// NamedSLAClass returns the class that the pod names, and kind "label" or "annotation", empty if it names none. It is
// an error if label and annotation differ.
func NamedSLAClass(pod *v1.Pod) (name, kind string, _ *wellknown.BadValue) {
	label, labelled := pod.Labels[wellknown.SLAClassKey]
	annotation, annotated := pod.Annotations[wellknown.SLAClassKey]
	switch {
	case labelled && annotated && label != annotation:
		return "", "", BadAnnotation(pod, wellknown.SLAClassKey,
			fmt.Sprintf("%q, which the pod's label of that key says", label))
	case labelled:
		return label, "label", nil
	case annotated:
		return annotation, "annotation", nil
	}
	return "", "", nil
}

// slaClassesFor is the part of an error with the classes that the pod may name.
func slaClassesFor(order *sla.Order, pod *v1.Pod) string {
	var open []string
	if order != nil {
		for _, name := range order.Names() {
			if order.Class(name, pod.Spec.PriorityClassName) != nil {
				open = append(open, strconv.Quote(name))
			}
		}
	}
	if len(open) == 0 {
		return fmt.Sprintf("a class of this scheduler: none is open to pods of PriorityClass %q", pod.Spec.PriorityClassName)
	}
	return fmt.Sprintf("one of the classes open to pods of PriorityClass %q: %s", pod.Spec.PriorityClassName,
		strings.Join(open, ", "))
}

// The largest objectives: 11 days, and more than any unit needs.
const (
	maxLatencyMs  = 1_000_000_000
	maxThroughput = 1_000_000_000_000
)

// PodObjective reads the objective of the pod.
func PodObjective(pod *v1.Pod) (o sla.Objective, bad *wellknown.BadValue) {
	if o.LatencyMs, bad = objective(pod, wellknown.SLOLatencyKey, maxLatencyMs); bad != nil {
		return sla.Objective{}, bad
	}
	if o.Throughput, bad = objective(pod, wellknown.SLOThroughputKey, maxThroughput); bad != nil {
		return sla.Objective{}, bad
	}
	return o, nil
}

// objective reads a positive decimal number, 0 if the pod has none.
func objective(pod *v1.Pod, key string, largest int64) (float64, *wellknown.BadValue) {
	text, ok := pod.Annotations[key]
	if !ok {
		return 0, nil
	}
	// Digits alone: ParseFloat also knows infinities, hexadecimal numbers and exponents.
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.") != "" || value <= 0 || value > float64(largest) {
		return 0, BadAnnotation(pod, key,
			fmt.Sprintf("a decimal number above 0 and at most %d, such as 250 or 0.5", largest))
	}
	return value, nil
}
