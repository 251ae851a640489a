package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
)

// ownerRetry is how long a kind is left alone that cannot be read, and the longest pause after other failures. Within about
// three times as long it is noticed that a kind is served or may be read after all.
const ownerRetry = 5 * time.Second

// ownerSource is what a follower knows of the objects of one kind. A reflector feeds it. It is no shared informer because
// the objects themselves are not wanted: of each only its states are kept.
type ownerSource struct {
	follower *ownerFollower
	kind     *gangview.OwnerKind
	// version is the index of the version in which the kind was read last; only the reflector uses it.
	version int

	// The follower's lock guards the rest.

	// listed is set when all objects are known, unreadable says why they cannot be read now, if so.
	listed     bool
	unreadable string
	// states holds what each object says, by part, and gangs the gangs that are followed, both by namespace/name.
	states map[string]map[string]gangview.OwnerState
	gangs  map[string]map[gang.ID]bool
}

func newOwnerSource(f *ownerFollower, kind *gangview.OwnerKind) *ownerSource {
	return &ownerSource{follower: f, kind: kind, states: map[string]map[string]gangview.OwnerState{}, gangs: map[string]map[gang.ID]bool{}}
}

// run watches the kind until ctx is done.
func (s *ownerSource) run(ctx context.Context) {
	klog.FromContext(ctx).V(2).Info("Watching the owners of gangs", "resource", s.kind.GroupResource)
	cache.NewReflectorWithOptions(ownerLister{s}, &unstructured.Unstructured{}, s, cache.ReflectorOptions{
		Name: Name + " owners", TypeDescription: s.kind.String(),
		Backoff: &wait.Backoff{Duration: time.Second, Cap: ownerRetry, Steps: 3, Factor: 2, Jitter: 1},
	}).RunWithContext(ctx)
}

func (s *ownerSource) join(key string, id gang.ID) {
	if s.gangs[key] == nil {
		s.gangs[key] = map[gang.ID]bool{}
	}
	s.gangs[key][id] = true
}

func (s *ownerSource) leave(key string, id gang.ID) {
	delete(s.gangs[key], id)
	if len(s.gangs[key]) == 0 {
		delete(s.gangs, key)
	}
}

// state returns what holds for a gang of the owner's pods. Where the pods carry the minimum it is left to them, and so the
// object need not be readable. An object that is gone leaves its last minimum.
func (s *ownerSource) state(owner *gangview.Owner, before gangview.OwnerState) gangview.OwnerState {
	states, found := s.states[ownerKey(owner.Namespace, owner.Name)]
	switch {
	case found && owner.Minimum > 0:
		state := states[""]
		state.Minimum = 0
		return state
	case owner.Minimum > 0:
		return gangview.OwnerState{}
	case found:
		state, has := states[owner.Part]
		if !has {
			return gangview.OwnerState{Why: owner.Object() + " has no part " + owner.Part}
		}
		return state
	}
	switch {
	case s.unreadable != "":
		before.Why = s.unreadable
	case !s.listed:
		before.Why = "waiting for " + s.kind.String() + " to be read"
	default:
		// There is nothing left that an event could be about.
		before.APIVersion, before.UID = "", ""
		before.Why = owner.Object() + ", which says how many pods the gang has, does not exist"
	}
	return before
}

// set records what an object says.
func (s *ownerSource) set(obj any) error {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("reading %s: got %T", s.kind, obj)
	}
	states := s.kind.States(object)
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	s.put(ownerKey(object.GetNamespace(), object.GetName()), states)
	return nil
}

// put records what the object under key says, nothing if it is gone. The lock is held.
func (s *ownerSource) put(key string, states map[string]gangview.OwnerState) {
	if maps.Equal(s.states[key], states) {
		return
	}
	if states == nil {
		delete(s.states, key)
	} else {
		s.states[key] = states
	}
	for id := range s.gangs[key] {
		s.follower.mark(id)
	}
}

// Add is called by the reflector for an object that has come.
func (s *ownerSource) Add(obj any) error { return s.set(obj) }

// Update is called by the reflector for an object that has changed.
func (s *ownerSource) Update(obj any) error { return s.set(obj) }

// Delete is called by the reflector for an object that has gone.
func (s *ownerSource) Delete(obj any) error {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("forgetting one of %s: got %T", s.kind, obj)
	}
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	s.put(ownerKey(object.GetNamespace(), object.GetName()), nil)
	return nil
}

// Replace is called by the reflector with all objects there are. What was known stays while they cannot be read: the list
// is empty then, because ownerLister makes it so.
func (s *ownerSource) Replace(objects []any, _ string) error {
	all := make(map[string]map[string]gangview.OwnerState, len(objects))
	for _, obj := range objects {
		if object, ok := obj.(*unstructured.Unstructured); ok {
			all[ownerKey(object.GetNamespace(), object.GetName())] = s.kind.States(object)
		}
	}
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	if s.unreadable != "" {
		return nil
	}
	for key := range s.states {
		if _, exists := all[key]; !exists {
			s.put(key, nil)
		}
	}
	for key, states := range all {
		s.put(key, states)
	}
	if !s.listed {
		s.listed = true
		s.markAll()
	}
	return nil
}

// Resync does nothing: what is known does not age.
func (s *ownerSource) Resync() error { return nil }

// markAll notes that something new may hold for all gangs of the kind. The lock is held.
func (s *ownerSource) markAll() {
	for _, ids := range s.gangs {
		for id := range ids {
			s.follower.mark(id)
		}
	}
}

// readable records whether the kind can be read, and says it once in the log if it cannot.
func (s *ownerSource) readable(ctx context.Context, err error) {
	why := ""
	switch {
	case apierrors.IsForbidden(err):
		why = fmt.Sprintf("cannot read %s: the scheduler's role lacks get, list and watch on %q in API group %q", s.kind, s.kind.Resource, s.kind.Group)
	case err != nil:
		why = fmt.Sprintf("cannot read %s: the cluster does not serve them", s.kind)
	}
	s.follower.mu.Lock()
	defer s.follower.mu.Unlock()
	if why == s.unreadable {
		return
	}
	s.unreadable = why
	s.markAll()
	if why != "" {
		klog.FromContext(ctx).Error(err, "Owners of gangs cannot be read, trying again", "resource", s.kind.GroupResource)
	}
}

// ownerLister lists and watches the objects of one kind in the newest version that the cluster serves. Where it serves none
// or the scheduler may not read them, it stands in for a list that is empty for a while.
type ownerLister struct{ *ownerSource }

func (l ownerLister) resource(version int) dynamic.NamespaceableResourceInterface {
	return l.follower.client.Resource(l.kind.WithVersion(l.kind.Versions[version]))
}

// ListWithContext lists all objects of the kind.
func (l ownerLister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var list *unstructured.UnstructuredList
	var err error
	for version := range l.kind.Versions {
		list, err = l.resource(version).List(ctx, options)
		if !apierrors.IsNotFound(err) {
			l.version = version
			break
		}
	}
	switch {
	case err == nil:
		l.readable(ctx, nil)
		return list, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		l.readable(ctx, err)
		empty := &unstructured.UnstructuredList{}
		empty.SetResourceVersion("0")
		return empty, nil
	}
	return nil, err
}

// WatchWithContext watches all objects of the kind.
func (l ownerLister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	l.follower.mu.Lock()
	unreadable := l.unreadable != ""
	l.follower.mu.Unlock()
	if unreadable {
		// The list that it would go on from is none.
		return informers.Pause(ctx, ownerRetry), nil
	}
	w, err := l.resource(l.version).Watch(ctx, options)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		l.readable(ctx, err)
		return informers.Pause(ctx, ownerRetry), nil
	}
	return w, err
}

// List lists all objects of the kind.
func (l ownerLister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch watches all objects of the kind.
func (l ownerLister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported keeps the reflector to plain lists, which can be answered for an absent resource.
func (ownerLister) IsWatchListSemanticsUnSupported() bool { return true }
