package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// resourceOf reads "rayclusters.v1.ray.io".
func resourceOf(s string) (schema.GroupVersionResource, error) {
	gvr, _ := schema.ParseResourceArg(s)
	if gvr == nil {
		return schema.GroupVersionResource{}, fmt.Errorf("%q is not a resource, such as rayclusters.v1.ray.io", s)
	}
	return *gvr, nil
}

// doKind makes the API server serve a kind of objects of another project, with any content.
func (w *world) doKind(ctx context.Context, l *line) error {
	gvr, err := resourceOf(l.arg(1))
	if err != nil {
		return err
	}
	kind := l.arg(0)
	subresources := map[string]any{}
	if l.option("status", "") == "yes" {
		subresources["status"] = map[string]any{}
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": gvr.GroupResource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"}},
		"spec": map[string]any{"group": gvr.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": gvr.Resource,
				"singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": gvr.Version, "served": true, "storage": true, "subresources": subresources,
				"schema": map[string]any{"openAPIV3Schema": open}}}},
	}}
	if _, err := w.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	return w.eventually(ctx, waitForControllers, func() error {
		_, err := w.dynamic.Resource(gvr).Namespace(w.name).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// objects returns those of a resource that a script speaks of, and the name of one. What has no namespace is called
// after the scenario, but for an IPReservation, whose name says its address.
func (w *world) objects(ctx context.Context, resource, name string) (dynamic.ResourceInterface, string, error) {
	gvr, err := resourceOf(resource)
	if err != nil {
		return nil, "", err
	}
	definition, err := w.dynamic.Resource(definitions).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if err == nil {
		scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
		switch {
		case scope == "Cluster" && gvr.Resource == "ipreservations":
			return w.dynamic.Resource(gvr), name, nil
		case scope == "Cluster":
			return w.dynamic.Resource(gvr), w.name + "-" + name, nil
		}
	}
	return w.dynamic.Resource(gvr).Namespace(w.name), name, nil
}

// doObject creates an object of a kind that a CustomResourceDefinition defines.
func (w *world) doObject(ctx context.Context, l *line) error {
	gvr, err := resourceOf(l.arg(0))
	if err != nil {
		return err
	}
	if err := w.namespace(ctx, w.name); err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(w.named(l.arg(2))), &o.Object); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	definition, err := w.dynamic.Resource(definitions).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	objects, name, err := w.objects(ctx, l.arg(0), l.arg(1))
	if err != nil {
		return err
	}
	o.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	o.SetName(name)
	made, err := objects.Create(ctx, o, metav1.CreateOptions{})
	if err == nil && made.GetNamespace() == "" {
		w.clusterWide = append(w.clusterWide,
			func(ctx context.Context) { _ = objects.Delete(ctx, name, metav1.DeleteOptions{}) })
	}
	return err
}

// doPatch changes an object of any kind.
func (w *world) doPatch(ctx context.Context, l *line) error {
	objects, name, err := w.objects(ctx, l.arg(0), l.arg(1))
	if err != nil {
		return err
	}
	patch, err := yaml.YAMLToJSON([]byte(w.named(l.arg(2))))
	if err != nil {
		return fmt.Errorf("reading the patch: %w", err)
	}
	_, err = objects.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// checkObject compares fields of an object, by paths such as status.licenses.0.used.
func (w *world) checkObject(ctx context.Context, l *line) error {
	objects, name, err := w.objects(ctx, l.arg(1), l.arg(2))
	if err != nil {
		return err
	}
	o, err := objects.Get(ctx, name, metav1.GetOptions{})
	switch {
	case l.arg(3) == "gone" && apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case l.arg(3) == "gone":
		return fmt.Errorf("%s %s exists", l.arg(1), name)
	case l.arg(3) == "event":
		return w.checkEvent(ctx, o, l.arg(4))
	}
	for path, want := range l.options {
		if path == "within" || path == "for" {
			continue
		}
		if got := fmt.Sprint(fieldAt(o.Object, path)); got != w.named(want) {
			return fmt.Errorf("%s %s: %s is %s, want %s", l.arg(1), name, path, got, want)
		}
	}
	return nil
}

// fieldAt follows a path through objects and lists; nil is what does not exist.
func fieldAt(value any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// doMark changes annotations of the pods of a set; the value "-" removes one.
func (w *world) doMark(ctx context.Context, l *line) error {
	changes := map[string]any{}
	for key, value := range l.with("annotation:") {
		if changes[key] = w.named(timed(value)); value == "-" {
			changes[key] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": changes}})
	if err != nil {
		return err
	}
	pods, err := w.some(ctx, l.arg(0), 0, func(*v1.Pod) bool { return true })
	if err != nil {
		return err
	}
	for _, p := range pods {
		if _, err := w.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// controllerRef returns a reference to the controller "rayclusters.v1.ray.io/NAME".
func (w *world) controllerRef(ctx context.Context, namespace, resource, name string) (metav1.OwnerReference, error) {
	gvr, err := resourceOf(resource)
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	o, err := w.dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return *metav1.NewControllerRef(o, o.GroupVersionKind()), nil
}
