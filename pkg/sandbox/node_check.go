package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

// resources is one list of resources with its field.
type resources struct {
	field string
	list  corev1.ResourceList
}

// checkNode finds what the API server would refuse, so that it is said before anything is started.
func checkNode(node *corev1.Node, at place) error {
	if node.Name == "" {
		return at.fault(".metadata.name", "missing; must be the node's name")
	}
	if errs := validation.IsDNS1123Subdomain(node.Name); len(errs) > 0 {
		return at.fault(".metadata.name", "%q: %s", node.Name, errs[0])
	}
	if node.Namespace != "" {
		return at.fault(".metadata.namespace", "%q; must be left out, nodes have none", node.Namespace)
	}
	lists := []resources{{"status.allocatable", node.Status.Allocatable}, {"status.capacity", node.Status.Capacity}}
	return checkContents(node.Labels, node.Annotations, node.Spec.Taints, lists, at, "metadata")
}

// checkContents checks what a node and a shape have in common. The labels and annotations of a node are below its
// metadata, and the taints below its spec.
func checkContents(labels, annotations map[string]string, taints []corev1.Taint, lists []resources, at place,
	metadata string) error {
	below, spec := at, at
	if metadata != "" {
		below, spec = at.below("."+metadata), at.below(".spec")
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if err := checkLabel(key, labels[key], below, "labels["+key+"]"); err != nil {
			return err
		}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
			return below.fault("annotations["+key+"]", "the key %q: %s", key, errs[0])
		}
		size += len(key) + len(annotations[key])
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		return below.fault("annotations", "%d bytes; must be at most %d", size, apivalidation.TotalAnnotationSizeLimitB)
	}
	for i, taint := range taints {
		if err := checkTaint(taint, taints[:i], spec.below(fmt.Sprintf("taints[%d]", i))); err != nil {
			return err
		}
	}
	for _, l := range lists {
		for _, name := range slices.Sorted(maps.Keys(l.list)) {
			if err := checkResource(name, l.list, at.below("."+l.field)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkLabel(key, value string, at place, field string) error {
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return at.fault(field, "the key %q: %s", key, errs[0])
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return at.fault(field, "%q: %s", value, errs[0])
	}
	return nil
}

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
	corev1.TaintEffectNoExecute}

func checkTaint(taint corev1.Taint, before []corev1.Taint, at place) error {
	if errs := validation.IsQualifiedName(taint.Key); len(errs) > 0 {
		return at.fault("key", "%q: %s", taint.Key, errs[0])
	}
	if errs := validation.IsValidLabelValue(taint.Value); len(errs) > 0 {
		return at.fault("value", "%q: %s", taint.Value, errs[0])
	}
	if !slices.Contains(taintEffects, taint.Effect) {
		return at.fault("effect", "%q; must be NoSchedule, PreferNoSchedule or NoExecute", taint.Effect)
	}
	for i := range before {
		if taint.MatchTaint(&before[i]) {
			return at.fault("key", "the taint %s:%s is there already", taint.Key, taint.Effect)
		}
	}
	return nil
}

func checkResource(name corev1.ResourceName, list corev1.ResourceList, at place) error {
	quantity := list[name]
	field := "[" + string(name) + "]"
	if errs := validation.IsQualifiedName(string(name)); len(errs) > 0 {
		return at.fault(field, "the resource %q: %s", name, errs[0])
	}
	if quantity.Sign() < 0 {
		return at.fault(field, "%s; must not be negative", quantity.String())
	}
	if (name == corev1.ResourcePods || strings.Contains(string(name), "/")) && quantity.MilliValue()%1000 != 0 {
		return at.fault(field, "%s; must be a whole number", quantity.String())
	}
	return nil
}
