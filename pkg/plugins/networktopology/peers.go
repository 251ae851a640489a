package networktopology

import (
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/topology"
)

// peers knows which pods belong together and on which nodes they are, counted by node: the informer's pods, pods that
// are assumed from Reserve on, and pods with a nominated node. A cycle looks up groups and never pods. Pods that belong
// to nothing are not followed. It is safe for concurrent use.
type peers struct {
	gangs    *gangview.Gangs
	appLabel string

	mu     sync.RWMutex
	pods   map[types.UID]*member
	groups map[groupKey]*group
}

// groupKey names a gang or an app.
type groupKey struct {
	app             bool
	namespace, name string
}

// group is where pods that belong together are.
type group struct {
	byNode map[string]int64
	// members are all that there are, with or without a node.
	members int
}

// member is a pod as it was last seen.
type member struct {
	pod *v1.Pod
	// known reports that the informer has told of the pod, and not Reserve alone.
	known bool
	// assumed is the node of Reserve while the informer's pod has none.
	assumed string
	node    string
	keys    []groupKey
}

// peersOf returns the state that the profiles of the scheduler with the same app label share, connected to the
// informer.
func peersOf(factory kubeinformers.SharedInformerFactory, appLabel string) (*peers, error) {
	return informers.SharedBy(factory, appLabel, func() (*peers, error) {
		p := newPeers(gangview.GangsOf(factory), appLabel)
		_, err := informers.Handle(factory, factory.Core().V1().Pods().Informer(), informers.Events[*v1.Pod]{
			Set: func(_, pod *v1.Pod) { p.see(pod) }, Gone: p.lose,
		})
		return p, err
	})
}

func newPeers(gangs *gangview.Gangs, appLabel string) *peers {
	return &peers{gangs: gangs, appLabel: appLabel, pods: map[types.UID]*member{}, groups: map[groupKey]*group{}}
}

// see takes note of a pod as the informer has it.
func (p *peers) see(pod *v1.Pod) {
	if podview.Finished(pod) {
		p.lose(pod)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.enrol(pod); m != nil {
		m.known = true
		if pod.Spec.NodeName != "" {
			m.assumed = ""
		}
		p.settle(m)
	}
}

func (p *peers) lose(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(pod.UID)
}

// assume puts a pod on the node that was reserved for it.
func (p *peers) assume(pod *v1.Pod, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.pods[pod.UID]
	if m == nil {
		m = p.enrol(pod)
	}
	if m != nil {
		m.assumed = node
		p.settle(m)
	}
}

// release takes it off again if it did not get there.
func (p *peers) release(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.pods[uid]; m != nil && m.known {
		m.assumed = ""
		p.settle(m)
		return
	}
	p.drop(uid)
}

// enrol makes the pod a member of what it belongs to by what it says now; nil if that is nothing and was nothing before.
func (p *peers) enrol(pod *v1.Pod) *member {
	m := p.pods[pod.UID]
	if m != nil && maps.Equal(m.pod.Labels, pod.Labels) && maps.Equal(m.pod.Annotations, pod.Annotations) {
		m.pod = pod
		return m
	}
	keys := p.keysOf(pod)
	switch {
	case m != nil:
		p.withdraw(m)
		m.pod = pod
	case len(keys) == 0:
		return nil
	default:
		m = &member{pod: pod}
		p.pods[pod.UID] = m
	}
	m.keys = keys
	for _, key := range keys {
		g := p.groups[key]
		if g == nil {
			g = &group{byNode: map[string]int64{}}
			p.groups[key] = g
		}
		g.members++
	}
	return m
}

// keysOf are the gang and the app of a pod.
func (p *peers) keysOf(pod *v1.Pod) []groupKey {
	var keys []groupKey
	if id := p.gangs.Of(pod); id != (gang.ID{}) {
		keys = append(keys, groupKey{namespace: id.Namespace, name: id.Name})
	}
	if p.appLabel != "" {
		if app := pod.Labels[p.appLabel]; app != "" {
			keys = append(keys, groupKey{app: true, namespace: pod.Namespace, name: app})
		}
	}
	return keys
}

// settle moves a member to the node where it is, or is to be.
func (p *peers) settle(m *member) {
	node := m.pod.Spec.NodeName
	switch {
	case m.pod.DeletionTimestamp != nil:
		node = "" // It is about to go, and nothing new should follow it.
	case node == "" && m.assumed != "":
		node = m.assumed
	case node == "":
		node = m.pod.Status.NominatedNodeName
	}
	if node != m.node {
		p.count(m, -1)
		m.node = node
		p.count(m, 1)
	}
}

// count adds the member to, or takes it from, what is counted on its node.
func (p *peers) count(m *member, n int64) {
	if m.node == "" {
		return
	}
	for _, key := range m.keys {
		byNode := p.groups[key].byNode
		if byNode[m.node] += n; byNode[m.node] == 0 {
			delete(byNode, m.node)
		}
	}
}

// withdraw takes a member out of all that it belongs to.
func (p *peers) withdraw(m *member) {
	p.count(m, -1)
	m.node = ""
	for _, key := range m.keys {
		g := p.groups[key]
		if g.members--; g.members == 0 {
			delete(p.groups, key)
		}
	}
	m.keys = nil
}

func (p *peers) drop(uid types.UID) {
	if m := p.pods[uid]; m != nil {
		p.withdraw(m)
		delete(p.pods, uid)
	}
}

// traffic is what a pod exchanges with all others of its gang, and of its app.
type traffic struct{ gang, app int64 }

// relation is all that a pod talks to.
type relation struct {
	links []link
}

// link is a group of pods that a pod talks to. The fields but moved do not change.
type link struct {
	key groupKey
	// traffic is exchanged with all of them together.
	traffic int64
	// moved counts pods that the cycle takes to be elsewhere, by node: planned siblings, and pods that are to go.
	moved map[string]int64
}

// Clone returns a relation of its own.
func (r *relation) Clone() *relation {
	out := &relation{links: make([]link, len(r.links))}
	for i, l := range r.links {
		l.moved = maps.Clone(l.moved)
		out.links[i] = l
	}
	return out
}

// relate finds out what a pod talks to; nil for a pod that keeps to itself.
func (p *peers) relate(pod *v1.Pod, t traffic) *relation {
	p.mu.RLock()
	defer p.mu.RUnlock()
	m := p.pods[pod.UID]
	var keys []groupKey
	if m != nil && maps.Equal(m.pod.Labels, pod.Labels) && maps.Equal(m.pod.Annotations, pod.Annotations) {
		keys = m.keys
	} else {
		keys = p.keysOf(pod)
	}
	r := &relation{}
	for _, key := range keys {
		amount := t.gang
		if key.app {
			amount = t.app
		}
		if amount > 0 {
			r.links = append(r.links, link{key: key, traffic: amount})
		}
	}
	if len(r.links) == 0 {
		return nil
	}
	// What is counted of the pod itself, on a node that it was nominated to.
	if m != nil && m.node != "" {
		r.shift(m.keys, m.node, -1)
	}
	return r
}

// shift takes a pod of these groups to be on the node, or no longer there, for the relation alone.
func (r *relation) shift(keys []groupKey, node string, n int64) {
	for i := range r.links {
		l := &r.links[i]
		for _, key := range keys {
			if key != l.key {
				continue
			}
			if l.moved == nil {
				l.moved = map[string]int64{}
			}
			l.moved[node] += n
		}
	}
}

// tally counts what the pod exchanges by where the others are: each link's traffic is spread evenly over the pods. Find
// returns the place of a node, nil for one that is gone.
func (p *peers) tally(r *relation, find func(node string) *topology.Place) *topology.Tally {
	out := topology.NewTally()
	p.mu.RLock()
	defer p.mu.RUnlock()
	for i := range r.links {
		l := &r.links[i]
		byNode := map[string]int64{}
		if g := p.groups[l.key]; g != nil {
			byNode = g.byNode
		}
		if len(l.moved) > 0 {
			byNode = maps.Clone(byNode)
			for node, n := range l.moved {
				byNode[node] += n
			}
		}
		total := int64(0)
		for _, n := range byNode {
			total += max(n, 0)
		}
		for node, n := range byNode {
			if place := find(node); n > 0 && place != nil {
				out.Add(place, max(n*l.traffic/total, 1))
			}
		}
	}
	return out
}
