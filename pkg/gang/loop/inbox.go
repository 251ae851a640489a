package loop

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
)

// News is what has happened since the loop last looked.
type News struct {
	// Changed are the gangs that may look different, as the ledger has said.
	Changed    map[gang.ID]bool
	happenings map[waiting.Happening]bool
	// arrived are the pods that came to a node, if a gang waits to which such pods matter.
	arrived []*v1.Pod
	// activations are pods to try again, and found the gangs for which pods to evict were looked for, or evicted:
	// not at once, because a cycle of theirs may not have ended yet, and what is activated within its own cycle goes on
	// with a back-off.
	activations []gang.Ref
	found       []gang.ID
}

// Inbox collects news for the loop. Handlers and cycles write to it from any goroutine.
type Inbox struct {
	// wake has an element while there is news.
	wake chan struct{}

	mu   sync.Mutex
	news News
	// arrivals is set if it matters which pods come to nodes.
	arrivals bool
}

// NewInbox returns one without news.
func NewInbox() *Inbox {
	i := &Inbox{wake: make(chan struct{}, 1)}
	i.news = i.empty()
	return i
}

func (*Inbox) empty() News {
	return News{Changed: map[gang.ID]bool{}, happenings: map[waiting.Happening]bool{}}
}

// Look has the loop look at what has changed elsewhere.
func (i *Inbox) Look() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

func (i *Inbox) add(write func(*News)) {
	i.mu.Lock()
	write(&i.news)
	i.mu.Unlock()
	i.Look()
}

// Take returns the news and leaves none.
func (i *Inbox) Take() News {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.news
	i.news = i.empty()
	return n
}

// Change notes that the gang may look different. It is called under the ledger's lock.
func (i *Inbox) Change(id gang.ID) { i.add(func(n *News) { n.Changed[id] = true }) }

// note notes the same, and leaves it to the next turn.
func (i *Inbox) note(id gang.ID) {
	i.mu.Lock()
	i.news.Changed[id] = true
	i.mu.Unlock()
}

// Happened notes that something happened that may help gangs.
func (i *Inbox) Happened(h waiting.Happening) { i.add(func(n *News) { n.happenings[h] = true }) }

// Activate has the pods tried again.
func (i *Inbox) Activate(pods []gang.Ref) {
	i.add(func(n *News) { n.activations = append(n.activations, pods...) })
}

// Resume has the gang tried again.
func (i *Inbox) Resume(id gang.ID) { i.add(func(n *News) { n.found = append(n.found, id) }) }

// Arrive notes that a pod came to a node.
func (i *Inbox) Arrive(pod *v1.Pod) {
	i.mu.Lock()
	matters := i.arrivals
	if matters {
		i.news.arrived = append(i.news.arrived, pod)
	}
	i.mu.Unlock()
	if matters {
		i.Look()
	}
}

// wantArrivals says whether it matters which pods come to nodes.
func (i *Inbox) wantArrivals(matters bool) {
	i.mu.Lock()
	i.arrivals = matters
	i.mu.Unlock()
}
