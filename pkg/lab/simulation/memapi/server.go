// Package memapi is a Kubernetes API in memory for the requests of a scheduler. client-go clients reach it through
// their transport: list, watch, get, create, update, patch, delete, binding, status and discovery, for built-in types
// and registered custom resources. It has no authentication and no garbage collection, and without Rules no admission,
// defaults or history.
//
// Reads are answered at once. After Defer, writes through the transport wait for CommitFirst, which applies them in an
// order that depends only on the requests. So goroutines that write at the same instant always leave the same history.
package memapi

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// EventType says what happened to an object.
type EventType string

// The three things that can happen to an object; the values are those of the watch protocol.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is one change. Object is the state after it (before it for Deleted) and Old the state before a Modified; both
// belong to the server and must not be changed.
type Event struct {
	Type   EventType
	GVR    schema.GroupVersionResource
	Object runtime.Object
	Old    runtime.Object
}

// Server is the API. Its methods may be called from any goroutine.
type Server struct {
	// Observe is called with every change while the server is locked: it must return quickly and not call the server. This
	// and the next fields have to be set before the first use.
	Observe func(Event)
	// StartPods makes a pod run from the moment of its binding.
	StartPods bool
	// Graceful keeps a pod that a client deletes, with a deletionTimestamp, until Delete is called, if the pod has a node
	// and a terminationGracePeriodSeconds. Without it every deletion is immediate.
	Graceful bool
	// Network delays and loses writes, and delays events.
	Network Network
	// Rules are those of a real API server, instead of Graceful.
	Rules Rules

	mu      sync.Mutex
	version int64
	kinds   map[schema.GroupVersionResource]kind
	tables  map[schema.GroupVersionResource]*table

	writes writeQueue
}

type kind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	custom     bool
}

type table struct {
	kind     kind
	objects  map[types.NamespacedName]runtime.Object
	born     map[types.NamespacedName]int64 // the version at which each object was created
	watchers []*watcher
	version  int64 // of the last change to any object in it
	// history is kept for watches from an earlier version; forgotten is the version of the last event that was removed.
	history   []Event
	forgotten int64
}

// New makes an empty server that knows every built-in type.
func New() *Server {
	s := &Server{
		kinds:  builtinKinds(),
		tables: map[schema.GroupVersionResource]*table{},
	}
	s.writes.changed = make(chan struct{}, 1)
	return s
}

// clusterScoped lists the built-in kinds without a namespace that a scheduler may read.
var clusterScoped = map[string]bool{
	"Node": true, "Namespace": true, "PersistentVolume": true, "PriorityClass": true, "StorageClass": true,
	"CSINode": true, "CSIDriver": true, "VolumeAttachment": true, "ResourceSlice": true, "DeviceClass": true,
	"DeviceTaintRule": true, "RuntimeClass": true, "ClusterRole": true, "ClusterRoleBinding": true,
}

func builtinKinds() map[schema.GroupVersionResource]kind {
	kinds := map[schema.GroupVersionResource]kind{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "List") ||
			strings.HasSuffix(gvk.Kind, "Options") {
			continue
		}
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds[gvr] = kind{gvk: gvk, namespaced: !clusterScoped[gvk.Kind]}
	}
	kinds[definitions] = kind{gvk: definitions.GroupVersion().WithKind("CustomResourceDefinition"), custom: true}
	return kinds
}

// Register makes a custom resource known; its objects are unstructured.
func (s *Server) Register(gvr schema.GroupVersionResource, kindName string, namespaced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[gvr] = kind{gvk: gvr.GroupVersion().WithKind(kindName), namespaced: namespaced, custom: true}
}

// Create stores obj, which the server then owns.
func (s *Server) Create(obj runtime.Object) error {
	gvr, err := s.resourceOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.create(gvr, obj)
	return err
}

// Change replaces an object by a copy that the function changes.
func (s *Server) Change(gvr schema.GroupVersionResource, name types.NamespacedName, change func(runtime.Object)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.update(gvr, name, func(old runtime.Object) (runtime.Object, error) {
		obj := old.DeepCopyObject()
		change(obj)
		return obj, nil
	})
	return err
}

// Delete removes an object, and reports whether it existed.
func (s *Server) Delete(gvr schema.GroupVersionResource, name types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.remove(gvr, name, nil)
	return err == nil
}

// Get returns the stored object, which must not be changed, or nil.
func (s *Server) Get(gvr schema.GroupVersionResource, name types.NamespacedName) runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[gvr]; t != nil {
		return t.objects[name]
	}
	return nil
}

// List returns the stored objects of a resource in the order of their creation; they must not be changed.
func (s *Server) List(gvr schema.GroupVersionResource) []runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[gvr]
	if t == nil {
		return nil
	}
	return t.sorted("", everything)
}

func (s *Server) resourceOf(obj runtime.Object) (schema.GroupVersionResource, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvks, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			return schema.GroupVersionResource{}, fmt.Errorf("finding the kind of a %T: %w", obj, err)
		}
		gvk = gvks[0]
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return gvr, nil
}

func (s *Server) table(gvr schema.GroupVersionResource) (*table, error) {
	if t := s.tables[gvr]; t != nil {
		return t, nil
	}
	k, ok := s.kinds[gvr]
	if !ok {
		return nil, errUnknownResource(gvr)
	}
	t := &table{kind: k, objects: map[types.NamespacedName]runtime.Object{}, born: map[types.NamespacedName]int64{}}
	s.tables[gvr] = t
	return t, nil
}

// sorted lists objects in the order of creation, which is so the order in which a scheduler sees nodes.
func (t *table) sorted(namespace string, match selector) []runtime.Object {
	keys := make([]types.NamespacedName, 0, len(t.objects))
	for key, obj := range t.objects {
		if (namespace == "" || key.Namespace == namespace) && match(obj) {
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return t.born[keys[i]] < t.born[keys[j]] })
	objects := make([]runtime.Object, len(keys))
	for i, key := range keys {
		objects[i] = t.objects[key]
	}
	return objects
}

// metaOf is the metadata of a stored object. An object without metadata is refused before it is stored.
func metaOf(stored runtime.Object) metav1.Object { return stored.(metav1.Object) }

// create, update and remove are called with the lock held.

func (s *Server) create(gvr schema.GroupVersionResource, obj runtime.Object) (runtime.Object, error) {
	t, err := s.table(gvr)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of a %T: %w", obj, err)
	}
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	if key.Name == "" {
		return nil, errInvalid(t.kind, "name is required")
	}
	if _, exists := t.objects[key]; exists {
		return nil, apierrors.NewAlreadyExists(gvr.GroupResource(), key.Name)
	}
	if m.GetUID() == "" {
		m.SetUID(types.UID(fmt.Sprintf("%s/%s/%d", strings.ToLower(t.kind.gvk.Kind), key, s.version+1)))
	}
	if created := m.GetCreationTimestamp(); created.IsZero() {
		m.SetCreationTimestamp(metav1.Now())
	}
	obj.GetObjectKind().SetGroupVersionKind(t.kind.gvk)
	setGeneration(nil, obj)
	s.stamp(m)
	t.objects[key], t.born[key] = obj, s.version
	if gvr == definitions {
		s.serve(obj)
	}
	s.publish(t, gvr, Event{Type: Added, Object: obj})
	return obj, nil
}

// find returns an object with its table.
func (s *Server) find(gvr schema.GroupVersionResource, key types.NamespacedName) (*table, runtime.Object, error) {
	t, err := s.table(gvr)
	if err != nil {
		return nil, nil, err
	}
	obj, ok := t.objects[key]
	if !ok {
		return nil, nil, apierrors.NewNotFound(gvr.GroupResource(), key.Name)
	}
	return t, obj, nil
}

func (s *Server) update(gvr schema.GroupVersionResource, key types.NamespacedName,
	change func(runtime.Object) (runtime.Object, error)) (runtime.Object, error) {
	t, old, err := s.find(gvr, key)
	if err != nil {
		return nil, err
	}
	obj, err := change(old)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of a %T: %w", obj, err)
	}
	if created := m.GetCreationTimestamp(); created.IsZero() {
		m.SetCreationTimestamp(metav1.Now())
	}
	obj.GetObjectKind().SetGroupVersionKind(t.kind.gvk)
	setGeneration(old, obj)
	s.stamp(m)
	t.objects[key] = obj
	s.publish(t, gvr, Event{Type: Modified, Object: obj, Old: old})
	return obj, nil
}

// setGeneration counts the specs of a custom resource, as an API server does.
func setGeneration(old, obj runtime.Object) {
	is, custom := obj.(*unstructured.Unstructured)
	if !custom {
		return
	}
	was, _ := old.(*unstructured.Unstructured)
	switch {
	case was == nil:
		is.SetGeneration(max(is.GetGeneration(), 1))
	case equality.Semantic.DeepEqual(was.Object["spec"], is.Object["spec"]):
		is.SetGeneration(was.GetGeneration())
	default:
		is.SetGeneration(was.GetGeneration() + 1)
	}
}

func (s *Server) remove(gvr schema.GroupVersionResource, key types.NamespacedName,
	conditions *metav1.Preconditions) (runtime.Object, error) {
	t, old, err := s.find(gvr, key)
	if err != nil {
		return nil, err
	}
	if err := checkPreconditions(conditions, gvr, metaOf(old)); err != nil {
		return nil, err
	}
	obj := old.DeepCopyObject()
	s.stamp(metaOf(obj))
	delete(t.objects, key)
	delete(t.born, key)
	s.publish(t, gvr, Event{Type: Deleted, Object: obj, Old: old})
	return obj, nil
}

// checkPreconditions checks the preconditions of a deletion, which may be nil.
func checkPreconditions(conditions *metav1.Preconditions, gvr schema.GroupVersionResource, m metav1.Object) error {
	switch {
	case conditions == nil:
		return nil
	case conditions.UID != nil && *conditions.UID != m.GetUID():
		return errConflict(gvr, m.GetName(),
			fmt.Sprintf("the UID in the precondition (%s) is not that of the object (%s)", *conditions.UID, m.GetUID()))
	case conditions.ResourceVersion != nil && *conditions.ResourceVersion != m.GetResourceVersion():
		return errConflict(gvr, m.GetName(),
			fmt.Sprintf("the resource version in the precondition (%s) is not that of the object (%s)",
				*conditions.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

func (s *Server) stamp(m metav1.Object) {
	s.version++
	m.SetResourceVersion(strconv.FormatInt(s.version, 10))
}

func (s *Server) publish(t *table, gvr schema.GroupVersionResource, e Event) {
	e.GVR = gvr
	t.version = s.version
	if s.Rules != nil {
		t.remember(e)
	}
	for _, w := range t.watchers {
		w.send(e)
	}
	if s.Observe != nil {
		s.Observe(e)
	}
}
