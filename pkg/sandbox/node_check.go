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

// checkNode returns an error for a node that the API server would refuse, before anything is started.
func checkNode(node *corev1.Node, at place) error {
	name := at.of("metadata.name")
	if node.Name == "" {
		return name.fault("missing; must be the node's name")
	}
	if errs := validation.IsDNS1123Subdomain(node.Name); len(errs) > 0 {
		return name.fault("%q: %s", node.Name, errs[0])
	}
	if node.Namespace != "" {
		return at.of("metadata.namespace").fault("%q; must be left out, nodes have none", node.Namespace)
	}
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		if err := checkLabel(key, node.Labels[key], at.of("metadata.labels["+key+"]")); err != nil {
			return err
		}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(node.Annotations)) {
		if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
			return at.of("metadata.annotations["+key+"]").fault("the key %q: %s", key, errs[0])
		}
		size += len(key) + len(node.Annotations[key])
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		return at.of("metadata.annotations").fault("%d bytes; must be at most %d", size,
			apivalidation.TotalAnnotationSizeLimitB)
	}
	for i, taint := range node.Spec.Taints {
		if err := checkTaint(taint, node.Spec.Taints[:i], at.of(fmt.Sprintf("spec.taints[%d]", i))); err != nil {
			return err
		}
	}
	if err := checkResources(node.Status.Allocatable, at.of("status.allocatable")); err != nil {
		return err
	}
	return checkResources(node.Status.Capacity, at.of("status.capacity"))
}

func checkLabel(key, value string, at place) error {
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return at.fault("the key %q: %s", key, errs[0])
	}
	if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
		return at.fault("%q: %s", value, errs[0])
	}
	return nil
}

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
	corev1.TaintEffectNoExecute}

func checkTaint(taint corev1.Taint, before []corev1.Taint, at place) error {
	if errs := validation.IsQualifiedName(taint.Key); len(errs) > 0 {
		return at.below(".key").fault("%q: %s", taint.Key, errs[0])
	}
	if errs := validation.IsValidLabelValue(taint.Value); len(errs) > 0 {
		return at.below(".value").fault("%q: %s", taint.Value, errs[0])
	}
	if !slices.Contains(taintEffects, taint.Effect) {
		return at.below(".effect").fault("%q; must be NoSchedule, PreferNoSchedule or NoExecute", taint.Effect)
	}
	for i := range before {
		if taint.MatchTaint(&before[i]) {
			return at.below(".key").fault("the taint %s:%s is there already", taint.Key, taint.Effect)
		}
	}
	return nil
}

func checkResources(list corev1.ResourceList, at place) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity, field := list[name], at.below("["+string(name)+"]")
		if errs := validation.IsQualifiedName(string(name)); len(errs) > 0 {
			return field.fault("the resource %q: %s", name, errs[0])
		}
		if quantity.Sign() < 0 {
			return field.fault("%s; must not be negative", quantity.String())
		}
		if (name == corev1.ResourcePods || strings.Contains(string(name), "/")) && quantity.MilliValue()%1000 != 0 {
			return field.fault("%s; must be a whole number", quantity.String())
		}
	}
	return nil
}
