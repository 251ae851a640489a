package status

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/process/informers"
)

// ownerRetry is the pause before the next attempt to read a kind that cannot be read.
const ownerRetry = 5 * time.Second

// ownerKind follows the objects of one kind with an informer that keeps only their states.
type ownerKind struct {
	*read.OwnerKind
	owners   *Owners
	informer cache.SharedIndexInformer
	// version is the index of the version in which the kind was listed last; only the informer uses it.
	version int

	// The lock of owners guards the rest.

	// listed is set when all objects are known, and unreadable is why they cannot be read now.
	listed     bool
	unreadable string
	// gangs are the followed gangs by the namespace/name of the object.
	gangs map[string]sets.Set[gang.ID]
}

// ownerObject is what the informer keeps of an object: its states by part.
type ownerObject struct {
	metav1.ObjectMeta
	states map[string]read.OwnerState
}

func newOwnerKind(o *Owners, known *read.OwnerKind) *ownerKind {
	k := &ownerKind{OwnerKind: known, owners: o, gangs: map[string]sets.Set[gang.ID]{}}
	// list finds out which version the cluster serves.
	resource := known.WithVersion("")
	k.informer = cache.NewSharedIndexInformerWithOptions(informers.NewPlainLists(k.list, k.watch),
		&unstructured.Unstructured{}, cache.SharedIndexInformerOptions{Identifier: o.name.WithResource(resource)})
	return k
}

// run watches the kind until ctx is done.
func (k *ownerKind) run(ctx context.Context) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "resource", k.GroupResource)
	logger.V(2).Info("Watching the owners of gangs")
	told, err := k.informer.AddEventHandler(informers.Events(func(old, object *ownerObject) {
		if old == nil || !reflect.DeepEqual(old.states, object.states) {
			k.see(ctx, object, false)
		}
	}, func(object *ownerObject) { k.see(ctx, object, true) }))
	err = errors.Join(err, k.informer.SetTransform(k.reduce), k.informer.SetWatchErrorHandlerWithContext(
		func(_ context.Context, _ *cache.Reflector, err error) { logger.V(2).Info("Watching ended", "err", err) }))
	if err != nil {
		logger.Error(err, "Owners of gangs are not watched")
		return
	}
	k.owners.running.Go(func() {
		if cache.WaitFor(ctx, "", told.HasSyncedChecker()) {
			k.owners.mu.Lock()
			defer k.owners.mu.Unlock()
			k.listed = true
			k.owners.enqueueAll()
		}
	})
	k.informer.RunWithContext(ctx)
}

// reduce makes an ownerObject of an object.
func (k *ownerKind) reduce(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	return &ownerObject{states: k.States(object),
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(),
			UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}}, nil
}

// states returns the states of the owner by part, nil if it does not exist or is not known.
func (k *ownerKind) states(owner read.Owner) map[string]read.OwnerState {
	obj, exists, err := k.informer.GetStore().GetByKey(ownerKey(owner))
	if err != nil || !exists {
		return nil
	}
	return obj.(*ownerObject).states
}

// state returns the state of a gang of the owner's pods. If the pods carry the minimum, the object need not be
// readable. An object that was deleted leaves its last minimum. The lock is held.
func (k *ownerKind) state(owner read.Owner, before read.OwnerState) read.OwnerState {
	states := k.states(owner)
	switch {
	case states != nil && owner.Minimum > 0:
		return states[""].LeavingMinimum(&owner)
	case owner.Minimum > 0:
		return read.OwnerState{}
	case states != nil:
		state, has := states[owner.StatePart()]
		if !has {
			return read.OwnerState{Why: owner.Object() + " has no part " + owner.Part}
		}
		return state
	}
	if before.Why = k.unread(); before.Why == "" {
		// There is no object for an event.
		before.APIVersion, before.UID = "", ""
		before.Why = owner.Object() + ", which says how many pods the gang has, does not exist"
	}
	return before
}

// unread returns why not all objects are known, empty if they are. The lock is held.
func (k *ownerKind) unread() string {
	if k.unreadable == "" && !k.listed {
		return "waiting for " + k.String() + " to be read"
	}
	return k.unreadable
}

// see syncs the gangs of an object that was added, changed or deleted.
func (k *ownerKind) see(ctx context.Context, object *ownerObject, gone bool) {
	k.plant(ctx, object, gone)
	k.owners.mu.Lock()
	defer k.owners.mu.Unlock()
	for id := range k.gangs[object.Namespace+"/"+object.Name] {
		k.owners.queue.Add(id)
	}
}

// enqueueAll syncs all gangs: those of a kind may be in trees of another one. The lock is held.
func (o *Owners) enqueueAll() {
	for id := range o.gangs {
		o.queue.Add(id)
	}
}

// list lists all objects of the kind in the newest version that the cluster serves. While it serves none, or the
// scheduler may not read them, list blocks, and the known objects stay.
func (k *ownerKind) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	var list *unstructured.UnstructuredList
	err := wait.PollUntilContextCancel(ctx, ownerRetry, true, func(ctx context.Context) (bool, error) {
		var err error
		for k.version = range k.Versions {
			if list, err = k.resource().List(ctx, options); !apierrors.IsNotFound(err) {
				break
			}
		}
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			k.setReadable(ctx, err)
			return err == nil, nil
		}
		return false, err
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // the reflector looks at it
	}
	return list, nil
}

func (k *ownerKind) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return k.resource().Watch(ctx, options) //nolint:wrapcheck // the reflector looks at it
}

func (k *ownerKind) resource() dynamic.NamespaceableResourceInterface {
	return k.owners.client.Resource(k.WithVersion(k.Versions[k.version]))
}

// setReadable records whether the kind can be read, and logs it once if it cannot.
func (k *ownerKind) setReadable(ctx context.Context, err error) {
	why := ""
	switch {
	case apierrors.IsForbidden(err):
		why = fmt.Sprintf("cannot read %s: the scheduler's role lacks get, list and watch on %q in API group %q", k,
			k.Resource, k.Group)
	case err != nil:
		why = fmt.Sprintf("cannot read %s: the cluster does not serve them", k)
	}
	k.owners.mu.Lock()
	defer k.owners.mu.Unlock()
	if why == k.unreadable {
		return
	}
	k.unreadable = why
	k.owners.enqueueAll()
	if why != "" {
		klog.FromContext(ctx).Error(err, "Owners of gangs cannot be read, trying again", "resource", k.GroupResource)
	}
}
