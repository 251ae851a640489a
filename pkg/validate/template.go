package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/wellknown"
)

// indirect are kinds that create pods through other objects, with the sort of object that their metadata is checked as:
// it does not reach the pods. Volcano copies that of a Job to its PodGroup.
var indirect = map[schema.GroupKind]string{
	{Group: "ray.io", Kind: "RayJob"}:                 controllers,
	{Group: "ray.io", Kind: "RayService"}:             controllers,
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}: controllers,
	{Group: "batch.volcano.sh", Kind: "Job"}:          wellknown.PodGroups,
}

// controller checks the pod templates in an object of Kubernetes, or of a kind whose pods can be a gang. The use of
// templates in other kinds is unknown. An object without templates is a group, or one from which no keys are read.
func (d *document) controller() {
	gvk := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	owner, owns := read.OwnerKindOf(d.Kind)
	of := indirect[gvk.GroupKind()]
	made := manifestScheme.Recognizes(gvk) || owns && owner.Group == gvk.Group || of != ""
	obj, paths := &unstructured.Unstructured{}, []string(nil)
	if made && obj.UnmarshalJSON(d.json) == nil {
		paths = d.templates(obj, obj.Object, "", nil)
	}
	if _, group := read.GroupKindOf(gvk); group {
		of = wellknown.PodGroups
	}
	if len(paths) == 0 || of != "" {
		d.keysAt("metadata", of, paths...)
	}
}

// templates checks the pod templates below a value at a path of the object, and returns their paths. Within is the
// object around the value.
func (d *document) templates(obj *unstructured.Unstructured, value any, path string, within map[string]any) []string {
	var paths []string
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			paths = append(paths, d.templates(obj, item, fmt.Sprintf("%s[%d]", path, i), within)...)
		}
	case map[string]any:
		of := indirect[obj.GroupVersionKind().GroupKind()]
		if spec, _ := v["spec"].(map[string]any); path != "" && spec["containers"] != nil {
			if of == "" {
				d.template(obj, v, path, within)
			}
			return []string{path}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			paths = append(paths, d.templates(obj, v[key], strings.TrimPrefix(path+"."+key, "."), v)...)
		}
		if len(paths) > 0 && of == "" {
			d.keysAt(strings.TrimPrefix(path+".metadata", "."), controllers, paths...)
		}
	}
	return paths
}

// template checks the pods that are created from a template.
func (d *document) template(obj *unstructured.Unstructured, fields map[string]any, path string, within map[string]any) {
	var t v1.PodTemplateSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &t) != nil {
		return // reported as a fault if the kind is known
	}
	pod := &v1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Namespace = d.namespace
	asked := pod.Annotations[wellknown.GangKey] == "true"
	gang := asked || read.MinMemberKey(pod.Annotations) != ""
	owner, owns := read.OwnerKindOf(d.Kind)
	kind := obj.GroupVersionKind()
	switch d.Kind {
	case "CronJob":
		kind = batchv1.SchemeGroupVersion.WithKind("Job")
	case "Deployment":
		kind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	case "DaemonSet": // the number of pods is unknown
		d.report.inventory.unread = append(d.report.inventory.unread, d)
	}
	if manifestScheme.Recognizes(kind) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: d.name}, kind)}
	} else {
		// The controller sets labels with the gang of its pods.
		maps.DeleteFunc(pod.Annotations, func(key, value string) bool {
			return key == wellknown.GangKey && value == "true" || read.MinMemberKey(map[string]string{key: value}) != ""
		})
	}
	around := []string{"metadata"}
	if job, inside := strings.CutSuffix(path, ".spec.template"); inside { // of a CronJob or a JobSet
		around = append(around, job+".metadata")
	}
	if id, _, err := read.Of(pod); gang || err == nil && id.Name != "" {
		d.eviction(within, obj, path, podsOf(within))
	}
	d.report.inventory.pods = append(d.report.inventory.pods, &podSource{d: d, pod: pod, at: path + ".metadata",
		around: around, count: podsOf(within), gang: asked})
	if !asked || !owns {
		return
	}
	states := owner.States(obj)
	for _, s := range states {
		if s.Why == "" {
			return
		}
	}
	d.findAt(Error, "gang", d.keyLine(path+".metadata", wellknown.GangKey),
		strings.TrimPrefix(states[""].Why, d.Kind+" "+d.name+" "))
}

// podsOf is how many pods an object creates from its template at a time.
func podsOf(within map[string]any) int {
	number := func(key string, otherwise int64) int64 {
		if n, given := within[key].(int64); given {
			return n
		}
		return otherwise
	}
	pods := number("parallelism", number("replicas", 1))
	return int(min(pods, number("completions", pods)))
}
