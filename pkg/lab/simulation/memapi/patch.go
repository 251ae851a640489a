package memapi

import (
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// applyPatch returns the patched object. An apply patch is merged: fields have no owners, so fields that a manager no
// longer applies stay. A patch that changes the identity of the object is refused: with the UID, a client says which
// one it means.
func applyPatch(old runtime.Object, patchType types.PatchType, patch []byte) (runtime.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old.DeepCopyObject())
	if err == nil {
		fields, err = change(fields, patchType, patch, old)
	}
	if err != nil {
		return nil, errBadRequest("applying the patch: " + err.Error())
	}
	var patched runtime.Object = &unstructured.Unstructured{Object: fields}
	if _, custom := old.(*unstructured.Unstructured); !custom {
		patched = reflect.New(reflect.TypeOf(old).Elem()).Interface().(runtime.Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, patched); err != nil {
			return nil, errBadRequest("the patched object: " + err.Error())
		}
	}
	was, is := metaOf(old), metaOf(patched)
	if was.GetUID() != is.GetUID() || was.GetName() != is.GetName() || was.GetNamespace() != is.GetNamespace() {
		return nil, errBadRequest("the patch changes the identity of " + was.GetName())
	}
	return patched, nil
}

// change applies a patch to the fields of an object. Merge patches are applied to maps, which takes half the time of
// JSON texts.
func change(fields map[string]any, patchType types.PatchType, patch []byte, of runtime.Object) (map[string]any, error) {
	if patchType == types.JSONPatchType {
		return applyOperations(fields, patch)
	}
	var changes map[string]any
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, fmt.Errorf("reading a JSON object: %w", err)
	}
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
