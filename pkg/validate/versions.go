package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	baseversion "k8s.io/component-base/version"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// formerGroups are former names of API groups that Berth reads.
var formerGroups = map[string]string{"scheduling.sigs.k8s.io": "scheduling.x-k8s.io"}

// inKubernetes ends messages about kinds of Kubernetes, because a newer release may have more of them.
const inKubernetes = " in Kubernetes " + baseversion.DefaultKubeBinaryVersion

// owned reports whether the kind is Berth's own, or that of a scheduler configuration.
func (d *document) owned() bool {
	switch schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).Group {
	case schedulingv1alpha1.GroupName, berthv1alpha1.GroupName, schedulerapi.GroupName:
		return true
	}
	return d.Kind == "" // nodes in the short form
}

// removed reports whether the built-in version of Kubernetes no longer serves the kind of the object.
func removed(obj runtime.Object) bool {
	old, removed := obj.(interface{ APILifecycleRemoved() (major, minor int) })
	if !removed {
		return false
	}
	major, minor := old.APILifecycleRemoved()
	return version.MustParse(baseversion.DefaultKubeBinaryVersion).AtLeast(version.MajorMinor(uint(major), uint(minor)))
}

// noKind reports a kind that does not exist in that version of a known API group, and suggests another. It returns
// false for unknown groups.
func (d *document) noKind(gvk schema.GroupVersionKind) bool {
	known, group, of := manifestScheme, cmp.Or(formerGroups[gvk.Group], gvk.Group), ""
	if d.Kind == configurationKind {
		known, group = scheme.Scheme, schedulerapi.GroupName
	} else if !known.IsGroupRegistered(group) {
		return false
	}
	if !d.owned() && group == gvk.Group {
		of = inKubernetes
	}
	var versions, elsewhere, kinds []string
	for kind := range known.AllKnownTypes() {
		obj, err := known.New(kind)
		switch {
		case err != nil || kind.Version == runtime.APIVersionInternal || removed(obj):
		case kind.Kind == gvk.Kind && kind.Group == group:
			versions = append(versions, kind.Version)
		case kind.Kind == gvk.Kind:
			elsewhere = append(elsewhere, kind.GroupVersion().String())
		case kind.GroupVersion() == gvk.GroupVersion():
			kinds = append(kinds, kind.Kind)
		}
	}
	message, severity := fmt.Sprintf("there is no kind %s of %s%s", d.Kind, d.APIVersion, of), Error
	slices.SortFunc(versions, apiversion.CompareKubeAwareVersionStrings)
	switch like := closest(gvk.Kind, kinds); {
	case len(versions) > 0:
		newest := versions[len(versions)-1]
		message += "; write apiVersion: " + schema.GroupVersion{Group: group, Version: newest}.String()
		if apiversion.CompareKubeAwareVersionStrings(gvk.Version, newest) > 0 && of != "" {
			severity = Warning
		}
	case len(elsewhere) > 0:
		slices.Sort(elsewhere)
		message += "; write apiVersion: " + strings.Join(elsewhere, " or ")
	case like != "":
		message += "; did you mean " + like + "?"
	case of != "":
		severity = Warning
	}
	d.findIn(severity, "kind", "kind", message)
	return true
}
