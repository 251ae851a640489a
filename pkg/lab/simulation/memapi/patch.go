package memapi

import (
	"fmt"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// applyPatch returns the patched object. An apply patch is merged: fields have no owners, so fields that a manager no
// longer applies stay. Merge patches are applied to maps, which takes half the time of JSON texts, and for a built-in
// kind only to the fields that the patch names: a patch of the status does not convert the spec.
func applyPatch(old runtime.Object, patchType types.PatchType, patch []byte) (runtime.Object, error) {
	if patchType == types.JSONPatchType {
		patched, err := patchFields(old.DeepCopyObject(), func(fields map[string]any) (map[string]any, error) {
			return applyOperations(fields, patch)
		})
		return checkPatched(old, patched, err)
	}
	var changes map[string]any
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, errBadRequest("applying the patch: reading a JSON object: " + err.Error())
	}
	merged := func(of runtime.Object) (runtime.Object, error) {
		return patchFields(of, func(fields map[string]any) (map[string]any, error) {
			return mergeFields(fields, patchType, changes, of)
		})
	}
	if _, custom := old.(*unstructured.Unstructured); custom {
		patched, err := merged(old.DeepCopyObject()) // the patch changes the object's own map
		return checkPatched(old, patched, err)
	}
	named := namedBy(changes)
	part := reflect.New(reflect.TypeOf(old).Elem()).Interface().(runtime.Object)
	setFields(part, old, named)
	patched, err := merged(part)
	if err == nil {
		setFields(patched, old.DeepCopyObject(), func(field string) bool { return !named(field) })
	}
	return checkPatched(old, patched, err)
}

// namedBy returns a function that reports whether the changes concern a top-level field. They always concern the kind,
// which is inlined and has no name. A directive concerns all fields.
func namedBy(changes map[string]any) func(field string) bool {
	fields := map[string]bool{"": true}
	for key := range changes {
		if strings.HasPrefix(key, "$") {
			return func(string) bool { return true }
		}
		fields[key] = true
	}
	return func(field string) bool { return fields[field] }
}

// setFields copies fields, chosen by their JSON names, from one built-in object to another.
func setFields(of, from runtime.Object, chosen func(name string) bool) {
	to, values := reflect.ValueOf(of).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		if name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ","); chosen(name) {
			to.Field(i).Set(values.Field(i))
		}
	}
}

// patchFields returns the object after a change of its fields.
func patchFields(of runtime.Object, change func(fields map[string]any) (map[string]any, error)) (runtime.Object,
	error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return nil, errBadRequest(err.Error())
	}
	if fields, err = change(fields); err != nil {
		return nil, errBadRequest("applying the patch: " + err.Error())
	}
	if _, custom := of.(*unstructured.Unstructured); custom {
		return &unstructured.Unstructured{Object: fields}, nil
	}
	obj, err := scheme.Scheme.New(of.GetObjectKind().GroupVersionKind())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, obj)
	}
	if err != nil {
		return nil, errBadRequest("the patched object: " + err.Error())
	}
	return obj, nil
}

func mergeFields(fields map[string]any, patchType types.PatchType, changes map[string]any,
	of runtime.Object) (map[string]any, error) {
	_, custom := of.(*unstructured.Unstructured)
	switch {
	case patchType == types.MergePatchType, patchType == types.ApplyYAMLPatchType && custom:
		return merge(fields, changes), nil
	case patchType == types.StrategicMergePatchType, patchType == types.ApplyYAMLPatchType:
		return strategicpatch.StrategicMergeMapPatch(fields, changes, of) //nolint:wrapcheck // the caller names it
	}
	return nil, fmt.Errorf("patch type %s is not supported", patchType)
}

// merge is the JSON merge patch of RFC 7396: objects are merged, null deletes, and all else replaces.
func merge(fields, changes map[string]any) map[string]any {
	if fields == nil {
		fields = map[string]any{}
	}
	for key, change := range changes {
		switch change := change.(type) {
		case nil:
			delete(fields, key)
		case map[string]any:
			below, _ := fields[key].(map[string]any)
			fields[key] = merge(below, change)
		default:
			fields[key] = change
		}
	}
	return fields
}

func applyOperations(fields map[string]any, patch []byte) (map[string]any, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("reading operations: %w", err)
	}
	before, err := utiljson.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}
	var patched map[string]any
	if err := utiljson.Unmarshal(after, &patched); err != nil {
		return nil, fmt.Errorf("reading what came of it: %w", err)
	}
	return patched, nil
}

// checkPatched refuses a patch that changes the identity of the object: with the UID, a client says which one it means.
func checkPatched(old, patched runtime.Object, failed error) (runtime.Object, error) {
	if failed != nil {
		return nil, failed
	}
	was, err := meta.Accessor(old)
	if err != nil {
		return nil, errBadRequest(err.Error())
	}
	is, err := meta.Accessor(patched)
	if err != nil {
		return nil, errBadRequest(err.Error())
	}
	if was.GetUID() != is.GetUID() || was.GetName() != is.GetName() || was.GetNamespace() != is.GetNamespace() {
		return nil, errBadRequest("the patch changes the identity of " + was.GetName())
	}
	return patched, nil
}
