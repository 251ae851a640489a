package waiting

import (
	"sync"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// News is what has happened since the loop last looked.
type News struct {
	Happenings map[Happening]bool
	// Arrived are the pods that came to a node, if a gang waits to which such pods matter.
	Arrived []*v1.Pod
	// Activations are pods to try again, and Found the gangs for which pods to evict were looked for, or evicted:
	// not at once, because a cycle of theirs may not have ended yet, and what is activated within its own cycle goes on
	// with a back-off.
	Activations []gang.Ref
	Found       []gang.ID
}

// Inbox collects news for the loop. Handlers and cycles write to it from any goroutine.
type Inbox struct {
	// Wake has an element while there is news.
	Wake chan struct{}

	mu   sync.Mutex
	news News
	// arrivals is set if it matters which pods come to nodes.
	arrivals bool
}

// NewInbox returns one without news.
func NewInbox() *Inbox {
	i := &Inbox{Wake: make(chan struct{}, 1)}
	i.news = i.empty()
	return i
}

func (*Inbox) empty() News {
	return News{Happenings: map[Happening]bool{}}
}

// Look has the loop look at what has changed elsewhere.
func (i *Inbox) Look() {
	select {
	case i.Wake <- struct{}{}:
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

// Happened notes that something happened that may help gangs.
func (i *Inbox) Happened(h Happening) { i.add(func(n *News) { n.Happenings[h] = true }) }

// Activate has the pods tried again.
func (i *Inbox) Activate(pods []gang.Ref) {
	i.add(func(n *News) { n.Activations = append(n.Activations, pods...) })
}

// Resume has the gang tried again.
func (i *Inbox) Resume(id gang.ID) { i.add(func(n *News) { n.Found = append(n.Found, id) }) }

// Arrive notes that a pod came to a node.
func (i *Inbox) Arrive(pod *v1.Pod) {
	i.mu.Lock()
	matters := i.arrivals
	if matters {
		i.news.Arrived = append(i.news.Arrived, pod)
	}
	i.mu.Unlock()
	if matters {
		i.Look()
	}
}

// WantArrivals says whether it matters which pods come to nodes.
func (i *Inbox) WantArrivals(matters bool) {
	i.mu.Lock()
	i.arrivals = matters
	i.mu.Unlock()
}
