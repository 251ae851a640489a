package coscheduling

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/waitlist"
)

// news is what has happened since the loop last looked.
type news struct {
	// changed are the gangs that may look different, as the ledger has said.
	changed    map[gang.ID]bool
	happenings map[waitlist.Happening]bool
	// arrived are the pods that came to a node, if a gang waits to which such pods matter.
	arrived []*v1.Pod
	// activations are pods to try again, and found the gangs for which pods to evict were looked for, or evicted:
	// not at once, because a cycle of theirs may not have ended yet, and what is activated within its own cycle goes on
	// with a back-off.
	activations []gang.Ref
	found       []gang.ID
}

// inbox collects news for the loop. Handlers and cycles write to it from any goroutine.
type inbox struct {
	// wake has an element while there is news.
	wake chan struct{}

	mu   sync.Mutex
	news news
	// arrivals is set if it matters which pods come to nodes.
	arrivals bool
}

func newInbox() *inbox {
	i := &inbox{wake: make(chan struct{}, 1)}
	i.news = i.empty()
	return i
}

func (*inbox) empty() news {
	return news{changed: map[gang.ID]bool{}, happenings: map[waitlist.Happening]bool{}}
}

// look has the loop look at what has changed elsewhere.
func (i *inbox) look() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

func (i *inbox) add(write func(*news)) {
	i.mu.Lock()
	write(&i.news)
	i.mu.Unlock()
	i.look()
}

// take returns the news and leaves none.
func (i *inbox) take() news {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.news
	i.news = i.empty()
	return n
}

// change notes that the gang may look different. It is called under the ledger's lock.
func (i *inbox) change(id gang.ID) { i.add(func(n *news) { n.changed[id] = true }) }

// happened notes that something happened that may help gangs.
func (i *inbox) happened(h waitlist.Happening) { i.add(func(n *news) { n.happenings[h] = true }) }

// activate has the pods tried again.
func (i *inbox) activate(pods []gang.Ref) {
	i.add(func(n *news) { n.activations = append(n.activations, pods...) })
}

// resume has the gang tried again.
func (i *inbox) resume(id gang.ID) { i.add(func(n *news) { n.found = append(n.found, id) }) }

// arrive notes that a pod came to a node.
func (i *inbox) arrive(pod *v1.Pod) {
	i.mu.Lock()
	matters := i.arrivals
	if matters {
		i.news.arrived = append(i.news.arrived, pod)
	}
	i.mu.Unlock()
	if matters {
		i.look()
	}
}

// wantArrivals says whether it matters which pods come to nodes.
func (i *inbox) wantArrivals(matters bool) {
	i.mu.Lock()
	i.arrivals = matters
	i.mu.Unlock()
}
