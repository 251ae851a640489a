package coscheduling

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

// ownerFollower knows what the objects say whose controllers create the pods of gangs, above all how many of these pods
// have to start together. It watches the kinds of objects that pods have been seen of and no others, keeps a few numbers
// of each object, and never makes its caller wait. Everything that it starts ends with the context of newOwnerFollower.
type ownerFollower struct {
	client dynamic.Interface
	// changed is told what holds for a gang, by one goroutine and without any lock held.
	changed func(context.Context, gangview.Owner, gangview.OwnerState)
	running sync.WaitGroup
	// kick wakes the goroutine that tells.
	kick chan struct{}

	mu sync.Mutex
	// sources holds what is watched by kind, gangs what is followed.
	sources map[string]*ownerSource
	gangs   map[gang.ID]*followedGang
	// dirty holds the gangs for which something new may hold.
	dirty map[gang.ID]bool
}

// followedGang is a gang with the object that its pods come from.
type followedGang struct {
	owner  gangview.Owner
	source *ownerSource
	// told is what was said of the gang last, if anything was.
	told  gangview.OwnerState
	heard bool
	// sure is set if it was said when all objects of the kind were known, acted if something was made of it.
	sure, acted bool
}

// newOwnerFollower makes a follower that reads objects with the rights of config.
func newOwnerFollower(ctx context.Context, config *restclient.Config, changed func(context.Context, gangview.Owner, gangview.OwnerState)) (*ownerFollower, error) {
	config = restclient.CopyConfig(config)
	config.UserAgent = restclient.DefaultKubernetesUserAgent() + "/" + Name
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the owners of gangs: %w", err)
	}
	f := &ownerFollower{client: client, changed: changed, kick: make(chan struct{}, 1), sources: map[string]*ownerSource{},
		gangs: map[gang.ID]*followedGang{}, dirty: map[gang.ID]bool{}}
	f.running.Go(func() { f.tell(ctx) })
	return f, nil
}

// follow makes the follower tell what holds for the gang of the owner's pods, now and whenever that changes. To say it
// again changes nothing and costs little, so that it may be said of every pod. Ctx is that of newOwnerFollower.
func (f *ownerFollower) follow(ctx context.Context, owner gangview.Owner) {
	kind, known := gangview.OwnerKindOf(owner.Kind)
	if !known {
		return
	}
	id := owner.Gang()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gangs[id] != nil {
		return
	}
	source := f.sources[owner.Kind]
	if source == nil {
		source = newOwnerSource(f, kind)
		f.sources[owner.Kind] = source
		f.running.Go(func() { source.run(ctx) })
	}
	f.gangs[id] = &followedGang{owner: owner, source: source}
	source.join(ownerKey(owner.Namespace, owner.Name), id)
	f.mark(id)
}

// repeat has what was told of the gang last told again.
func (f *ownerFollower) repeat(id gang.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.gangs[id]; g != nil && g.heard {
		g.heard = false
		f.mark(id)
	}
}

// drop ends the following of a gang that has no pods any more.
func (f *ownerFollower) drop(id gang.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.gangs[id]
	if g == nil {
		return
	}
	g.source.leave(ownerKey(g.owner.Namespace, g.owner.Name), id)
	delete(f.gangs, id)
	delete(f.dirty, id)
}

// outlived reports whether the pod is left over from an earlier run of the object that its gang belongs to, and so is no
// member of the gang any more. A pod without a node stays a member: it would be scheduled by itself otherwise.
func (f *ownerFollower) outlived(owner *gangview.Owner, pod *v1.Pod) bool {
	if owner.Kind == "" || pod.Spec.NodeName == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	source := f.sources[owner.Kind]
	if source == nil {
		return false
	}
	state, found := source.states[ownerKey(owner.Namespace, owner.Name)][""]
	return found && state.Outlived(owner.Kind, pod)
}

// mark notes that something new may hold for the gang. The lock is held.
func (f *ownerFollower) mark(id gang.ID) {
	f.dirty[id] = true
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// tell says what is new until ctx is done.
func (f *ownerFollower) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.kick:
		}
		for owner, state := range f.news {
			if ctx.Err() != nil {
				return
			}
			f.changed(ctx, owner, state)
		}
	}
}

// news yields the gangs for which something else holds than what was told last.
func (f *ownerFollower) news(yield func(gangview.Owner, gangview.OwnerState) bool) {
	for {
		owner, state, found := f.next()
		if !found || !yield(owner, state) {
			return
		}
	}
}

func (f *ownerFollower) next() (gangview.Owner, gangview.OwnerState, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.dirty {
		delete(f.dirty, id)
		g := f.gangs[id]
		state := g.source.state(&g.owner, g.told)
		g.sure = g.source.listed && g.source.unreadable == ""
		if g.heard && state == g.told {
			continue
		}
		g.told, g.heard = state, true
		return g.owner, state, true
	}
	return gangview.Owner{}, gangview.OwnerState{}, false
}

// act notes that something was made of what was said of the gang.
func (f *ownerFollower) act(id gang.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.gangs[id]; g != nil {
		g.acted = g.sure
	}
}

// unheard reports whether it is not known yet what holds for the gang, because the objects of its kind have not been read or cannot be.
func (f *ownerFollower) unheard(id gang.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.gangs[id]
	return g != nil && !g.acted
}

func ownerKey(namespace, name string) string { return namespace + "/" + name }
