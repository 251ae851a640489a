package memapi

import (
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Rules are what an API server does with objects in addition to storing them. They apply to requests, not to the
// server's own methods, and are called while the server is locked. A server without rules stores objects as they are,
// drops events, and keeps no history.
type Rules interface {
	// Create returns the object as it is stored: complete, with a name, a UID and a time of creation.
	Create(gvr schema.GroupVersionResource, obj runtime.Object) (runtime.Object, error)
	// Update returns the object as it is stored after a write to it or to its subresource, such as "status". Old must
	// not be changed.
	Update(gvr schema.GroupVersionResource, subresource string, obj, old runtime.Object) (runtime.Object, error)
	// Delete decides whether a deleted object stays, and then marks obj, a copy of the stored one.
	Delete(gvr schema.GroupVersionResource, obj runtime.Object, options *metav1.DeleteOptions) (Stay, error)
}

// Stay says whether a deleted object stays.
type Stay int

// A deleted object goes at once, is marked and stays until its finalizers or its grace period end, or was marked
// before.
const (
	Goes Stay = iota
	Marked
	AlreadyMarked
)

// historyLength is the number of events of a resource that a server with rules keeps for watches from an earlier
// version.
const historyLength = 4096

// endByRules deletes an object by the rules.
func (s *Server) endByRules(gvr schema.GroupVersionResource, key types.NamespacedName,
	options *metav1.DeleteOptions) (runtime.Object, error) {
	_, old, err := s.find(gvr, key)
	if err != nil {
		return nil, err
	}
	obj := old.DeepCopyObject()
	stay, err := s.Rules.Delete(gvr, obj, options)
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it is the answer
	case stay == AlreadyMarked:
		return old, nil
	case stay == Marked:
		return s.update(gvr, key, func(runtime.Object) (runtime.Object, error) { return obj, nil })
	}
	return s.remove(gvr, key, nil)
}

// endIfDone removes a deleted object after the write that removed its last finalizer.
func (s *Server) endIfDone(gvr schema.GroupVersionResource, key types.NamespacedName,
	obj runtime.Object) (runtime.Object, error) {
	m := metaOf(obj)
	if m.GetDeletionTimestamp() == nil || len(m.GetFinalizers()) > 0 {
		return obj, nil
	}
	if grace := m.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return obj, nil
	}
	return s.remove(gvr, key, nil)
}

// endAll deletes what a request selects.
func (s *Server) endAll(req *http.Request, tab *table, t target, options *metav1.DeleteOptions) error {
	query := req.URL.Query()
	match, err := newSelector(query.Get("labelSelector"), query.Get("fieldSelector"))
	if err != nil {
		return err
	}
	for _, obj := range tab.sorted(t.key.Namespace, match) {
		one := t
		one.key = types.NamespacedName{Namespace: metaOf(obj).GetNamespace(), Name: metaOf(obj).GetName()}
		if _, err := s.end(one, options.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// remember keeps an event for watches that begin at an earlier version.
func (t *table) remember(e Event) {
	if len(t.history) >= historyLength {
		t.forgotten = versionOf(t.history[0].Object)
		t.history = slices.Delete(t.history, 0, 1)
	}
	t.history = append(t.history, e)
}

// since returns the events after a version, and whether the history has all of them.
func (t *table) since(version int64) ([]Event, bool) {
	if version < t.forgotten {
		return nil, false
	}
	i := slices.IndexFunc(t.history, func(e Event) bool { return versionOf(e.Object) > version })
	if i < 0 {
		return nil, true
	}
	return t.history[i:], true
}

func versionOf(obj runtime.Object) int64 {
	version, _ := strconv.ParseInt(metaOf(obj).GetResourceVersion(), 10, 64) // the server has written it
	return version
}

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// serve registers the kind of a CustomResourceDefinition.
func (s *Server) serve(obj runtime.Object) {
	definition, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedString(definition.Object, append([]string{"spec"}, path...)...)
		return value
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		gvr := schema.GroupVersionResource{Group: field("group"), Version: name, Resource: field("names", "plural")}
		s.kinds[gvr] = kind{gvk: gvr.GroupVersion().WithKind(field("names", "kind")),
			namespaced: field("scope") == "Namespaced", custom: true}
	}
}
