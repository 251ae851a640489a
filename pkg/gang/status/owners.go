package status

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
)

// Owners follows the objects whose controllers create the pods of gangs, and the groups of other schedulers that pods
// name. It watches a kind once a pod of it was seen, and keeps the OwnerState of each object.
type Owners struct {
	client dynamic.Interface
	// name identifies the informers in metrics.
	name *cache.InformerName
	// directory gets what groups declare.
	directory *members.Directory
	recorder  recorder
	queue     workqueue.TypedInterface[gang.ID]
	running   sync.WaitGroup

	// trees are the trees of native groups, and refile is called when they change.
	trees  *grouptree.Forest
	refile Refile

	// mu is an RWMutex because scheduling cycles call Limit.
	mu    sync.RWMutex
	kinds map[string]*ownerKind
	gangs map[gang.ID]*followedGang
}

// followedGang is a gang with the object that its pods come from.
type followedGang struct {
	owner read.Owner
	kind  *ownerKind
	// reported is the last state that changed was called with, if told is set.
	reported read.OwnerState
	told     bool
	// read is set if all objects of the kind were known at that time.
	read bool
}

// NewOwners returns an Owners that reads objects with config until ctx is done. It calls changed with the state of a
// gang, from one goroutine and without a lock.
func NewOwners(ctx context.Context, config *restclient.Config, name *cache.InformerName,
	directory *members.Directory, to events.EventRecorderLogger,
	changed func(context.Context, read.Owner, read.OwnerState)) (*Owners, error) {
	config = restclient.CopyConfig(config)
	config.UserAgent = restclient.DefaultKubernetesUserAgent() + "/" + Kind.Reader
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the owners of gangs: %w", err)
	}
	o := &Owners{client: client, name: name, directory: directory, recorder: recorder{to},
		queue: workqueue.NewTyped[gang.ID](), kinds: map[string]*ownerKind{}, gangs: map[gang.ID]*followedGang{},
		trees: grouptree.New()}
	context.AfterFunc(ctx, o.queue.ShutDown)
	o.running.Go(func() {
		drain(ctx, o.queue, func(ctx context.Context, id gang.ID) { o.sync(ctx, id, changed) })
	})
	return o, nil
}

// Follow calls changed with the state of the gang of the owner's pods, now and whenever it changes; if again is set,
// also for a state that was reported. It does not block, and is called for every pod. ctx is that of NewOwners.
func (o *Owners) Follow(ctx context.Context, owner read.Owner, again bool) {
	id := owner.Gang()
	o.mu.Lock()
	defer o.mu.Unlock()
	if g := o.gangs[id]; g != nil {
		if again && g.told {
			g.told = false
			o.queue.Add(id)
		}
		return
	}
	k := o.kindOf(ctx, owner.Kind)
	if k == nil {
		return
	}
	o.gangs[id] = &followedGang{owner: owner, kind: k}
	key := ownerKey(owner)
	if k.gangs[key] == nil {
		k.gangs[key] = sets.Set[gang.ID]{}
	}
	k.gangs[key].Insert(id)
	o.queue.Add(id)
}

// kindOf returns the kind and watches its objects, nil if there is none of that name. The lock is held.
func (o *Owners) kindOf(ctx context.Context, name string) *ownerKind {
	known, ok := read.OwnerKindOf(name)
	if k := o.kinds[name]; k != nil || !ok {
		return k
	}
	k := newOwnerKind(o, known)
	o.kinds[name] = k
	o.running.Go(func() { k.run(ctx) })
	return k
}

// Drop ends Follow for a gang without pods.
func (o *Owners) Drop(id gang.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if g := o.gangs[id]; g != nil {
		key := ownerKey(g.owner)
		if g.kind.gangs[key].Delete(id); len(g.kind.gangs[key]) == 0 {
			delete(g.kind.gangs, key)
		}
		delete(o.gangs, id)
		o.directory.Declare(id, nil)
	}
}

// Unread reports whether the state of the gang is not known, because the objects of its kind have not been read.
func (o *Owners) Unread(id gang.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	g := o.gangs[id]
	return g != nil && !g.read
}

// Outlived reports whether the pod is left over from an earlier run of the owner, and so is no member of the gang
// anymore. A pod without a node stays a member: it would be scheduled alone otherwise.
func (o *Owners) Outlived(owner read.Owner, pod *v1.Pod) bool {
	if owner.Kind == "" || pod.Spec.NodeName == "" {
		return false
	}
	k, states := o.statesOf(owner)
	state, found := states[""]
	return found && k.Object == "" && state.Outlived(owner.Kind, pod)
}

// Limit returns after what time the owner ends the pods of its gang, 0 if it does not or has not been read.
func (o *Owners) Limit(owner read.Owner) time.Duration {
	_, states := o.statesOf(owner)
	return states[owner.Part].Limit
}

// statesOf returns the kind and the states of the owner, by part; nil if they are not known.
func (o *Owners) statesOf(owner read.Owner) (*ownerKind, map[string]read.OwnerState) {
	o.mu.RLock()
	k := o.kinds[owner.Kind]
	o.mu.RUnlock()
	if k == nil {
		return nil, nil
	}
	return k, k.states(owner)
}

// sync reports the state of the gang if it is new.
func (o *Owners) sync(ctx context.Context, id gang.ID,
	changed func(context.Context, read.Owner, read.OwnerState)) {
	o.mu.Lock()
	g := o.gangs[id]
	if g == nil {
		o.mu.Unlock()
		return
	}
	state, read := g.kind.state(g.owner, g.reported), g.kind.unread() == ""
	state = o.inTree(g.owner, state)
	news := !g.told || !reflect.DeepEqual(state, g.reported)
	notKept := state.NotKept(&g.owner)
	if state.UID == g.reported.UID && notKept == g.reported.NotKept(&g.owner) {
		notKept = ""
	}
	if g.reported, g.told = state, true; news {
		o.directory.Declare(id, state.PodGroup(id))
	}
	o.mu.Unlock()
	if news {
		changed(ctx, g.owner, state)
	}
	if about := g.object(); about != nil {
		if news && state.Why != "" {
			o.recorder.warn(ctx, about, "GangCannotStart", state.Why)
		}
		if notKept != "" {
			o.recorder.warn(ctx, about, "NotFollowed", "not followed: "+notKept)
		}
	}
	o.mu.Lock()
	g.read = read
	o.mu.Unlock()
}

// object is the reference to the owner for events, nil if there is none.
func (g *followedGang) object() *v1.ObjectReference {
	if g.reported.UID == "" {
		return nil
	}
	return &v1.ObjectReference{APIVersion: g.reported.APIVersion, Kind: cmp.Or(g.kind.Object, g.owner.Kind),
		Namespace: g.owner.Namespace, Name: g.owner.Name, UID: g.reported.UID}
}

func ownerKey(owner read.Owner) string { return owner.Namespace + "/" + owner.Name }
