package scenarios_test

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

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
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": gvr.GroupResource().String(),
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests"}},
		"spec": map[string]any{"group": gvr.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": gvr.Resource, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{"name": gvr.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": open}}}},
	}}
	if _, err := w.dynamic.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return w.eventually(ctx, waitForControllers, func() error {
		_, err := w.dynamic.Resource(gvr).Namespace(w.name).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// doObject creates an object of such a kind.
func (w *world) doObject(ctx context.Context, l *line) error {
	gvr, err := resourceOf(l.arg(0))
	if err != nil {
		return err
	}
	if err := w.namespace(ctx, w.name); err != nil {
		return err
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(l.arg(2)), &o.Object); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	definition, err := w.dynamic.Resource(definitions).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	o.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	o.SetName(l.arg(1))
	_, err = w.dynamic.Resource(gvr).Namespace(w.name).Create(ctx, o, metav1.CreateOptions{})
	return err
}

// doPatch changes an object of any kind.
func (w *world) doPatch(ctx context.Context, l *line) error {
	gvr, err := resourceOf(l.arg(0))
	if err != nil {
		return err
	}
	patch, err := yaml.YAMLToJSON([]byte(l.arg(2)))
	if err != nil {
		return fmt.Errorf("reading the patch: %w", err)
	}
	_, err = w.dynamic.Resource(gvr).Namespace(w.name).Patch(ctx, l.arg(1), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
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
