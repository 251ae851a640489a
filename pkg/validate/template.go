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

// indirect are kinds that make pods through other objects, and what of their own metadata counts: no pod gets it.
// Volcano puts that of a Job on its PodGroup.
var indirect = map[schema.GroupKind]string{
	{Group: "ray.io", Kind: "RayJob"}:                 controllers,
	{Group: "ray.io", Kind: "RayService"}:             controllers,
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}: controllers,
	{Group: "batch.volcano.sh", Kind: "Job"}:          wellknown.PodGroups,
}

// controller checks the templates of pods in an object of Kubernetes, or of a kind whose pods can be a gang. What other
// kinds do with their templates is not known. An object without templates is a group, or has nothing that is read.
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

// templates checks the templates below a value at a path of the object, and returns their paths. Within is the object
// around the value.
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

// template checks the pods that are made of a template.
func (d *document) template(obj *unstructured.Unstructured, fields map[string]any, path string, within map[string]any) {
	var t v1.PodTemplateSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &t) != nil {
		return // a fault of its own where the kind is known
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
	case "DaemonSet": // makes a pod for each node
		d.report.together.unread = append(d.report.together.unread, d)
	}
	if manifestScheme.Recognizes(kind) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: d.name}, kind)}
	} else {
		// Its pods name their gang in labels that the controller sets.
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
	d.report.together.pods = append(d.report.together.pods, &reference{d: d, pod: pod, at: path + ".metadata",
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

// podsOf is how many pods an object makes of its template at a time.
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
