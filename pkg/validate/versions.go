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

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// formerGroups are API groups of objects that Berth reads by the names that they once had.
var formerGroups = map[string]string{"scheduling.sigs.k8s.io": "scheduling.x-k8s.io"}

// inKubernetes ends what is said of the kinds of Kubernetes. A newer release may have more of them.
const inKubernetes = " in Kubernetes " + baseversion.DefaultKubeBinaryVersion

// owned says whether the kind is Berth's own.
func (d *document) owned() bool {
	switch schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).Group {
	case schedulingv1alpha1.GroupName, placementv1alpha1.GroupName, schedulerapi.GroupName:
		return true
	}
	return d.Kind == "" // nodes in the short form
}

// removed says whether the version of Kubernetes with which this was built serves objects like this no more.
func removed(obj runtime.Object) bool {
	old, removed := obj.(interface{ APILifecycleRemoved() (major, minor int) })
	if !removed {
		return false
	}
	major, minor := old.APILifecycleRemoved()
	return version.MustParse(baseversion.DefaultKubeBinaryVersion).AtLeast(version.MajorMinor(uint(major), uint(minor)))
}

// noKind tells of a kind that none of the API groups known here has in that version, and what to write instead. It says
// nothing of other groups.
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
