package networktopology

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/topology"
)

// traffic is what pods exchange where they do not say, in KiB an hour.
type traffic struct{ gang, app, near int64 }

// relation is all that a pod talks to.
type relation struct {
	pod   *v1.Pod
	links []link
}

// link is a set of pods that a pod talks to. The fields but moved do not change.
type link struct {
	key groupKey
	// selector is set for pods that the pod names, and for pods that name it by a selector which selects it.
	selector string
	matches  labels.Selector
	// inverse is set for those that name the pod.
	inverse bool
	// kibPerHour is exchanged with all of them together; not used where inverse.
	kibPerHour int64
	// moved counts pods that the cycle takes to be elsewhere, by node: planned siblings, and pods that are to go. Where
	// inverse it adds up what they exchange with all that they name.
	moved map[string]int64
}

// Clone returns a relation of its own.
func (r *relation) Clone() *relation {
	out := &relation{pod: r.pod, links: make([]link, len(r.links))}
	for i, l := range r.links {
		l.moved = maps.Clone(l.moved)
		out.links[i] = l
	}
	return out
}

// relate finds out what a pod talks to; nil for a pod that keeps to itself.
func (p *peers) relate(pod *v1.Pod, near []podview.Near, t traffic) *relation {
	if len(near) > 0 {
		p.mayBeNamed(pod.Namespace)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	m := p.pods[pod.UID]
	seen := m != nil && maps.Equal(m.pod.Labels, pod.Labels) && maps.Equal(m.pod.Annotations, pod.Annotations)
	named := p.spaces[pod.Namespace].selecting(pod)
	var keys []groupKey
	var links []link
	if seen {
		for _, g := range m.groups {
			keys = append(keys, g.key)
		}
	} else {
		keys = p.keysOf(pod)
	}
	for _, key := range keys {
		amount := t.gang
		if key.app {
			amount = t.app
		}
		if amount > 0 {
			links = append(links, link{key: key, kibPerHour: amount})
		}
	}
	for _, n := range near {
		l := link{selector: n.Selector, matches: n.Matches, kibPerHour: n.KiBPerHour}
		if l.kibPerHour == 0 {
			l.kibPerHour = t.near
		}
		links = append(links, l)
	}
	for _, term := range named {
		links = append(links, link{selector: term.selector, matches: term.matches, inverse: true})
	}
	if len(links) == 0 {
		return nil
	}
	r := &relation{pod: pod, links: links}
	// What the index counts of the pod itself, on a node that it was nominated to.
	if m != nil && m.node != "" {
		p.shift(r, m.pod, m.node, -1, t)
	}
	return r
}

// mayBeNamed follows all pods of the namespace of a pod that names others. That pod may exist in a manifest only, or
// have come this instant.
func (p *peers) mayBeNamed(namespace string) {
	p.mu.RLock()
	s := p.spaces[namespace]
	whole := s != nil && s.whole
	p.mu.RUnlock()
	if !whole {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.followAll(namespace)
	}
}

// shift takes a pod to be on the node, or no longer there, for the relation alone.
func (p *peers) shift(r *relation, pod *v1.Pod, node string, n int64, t traffic) {
	var near []podview.Near
	if pod.Namespace == r.pod.Namespace {
		near, _ = podview.PodNear(pod)
	}
	keys := p.keysOf(pod)
	for i := range r.links {
		l := &r.links[i]
		amount := int64(0)
		switch {
		case l.inverse:
			for _, other := range near {
				if other.Selector != l.selector {
					continue
				}
				if amount = other.KiBPerHour; amount == 0 {
					amount = t.near
				}
			}
		case l.matches != nil:
			if pod.Namespace == r.pod.Namespace && l.matches.Matches(labels.Set(pod.Labels)) {
				amount = 1
			}
		default:
			for _, key := range keys {
				if key == l.key {
					amount = 1
				}
			}
		}
		if amount == 0 {
			continue
		}
		if l.moved == nil {
			l.moved = map[string]int64{}
		}
		l.moved[node] += n * amount
	}
}

// tally counts what the pod exchanges by where the others are. Find returns the place of a node, nil for one that is
// gone.
func (p *peers) tally(r *relation, t traffic, find func(node string) *topology.Place) *topology.Tally {
	out := topology.NewTally()
	p.mu.RLock()
	defer p.mu.RUnlock()
	s := p.spaces[r.pod.Namespace]
	for i := range r.links {
		l := &r.links[i]
		var term *term
		if l.matches != nil && s != nil {
			term = s.terms[l.selector]
		}
		switch {
		case l.inverse && term != nil:
			// Those that name the pod spread what they exchange over all that they name, this one now among them.
			share := term.matched.total + 1
			if m := p.pods[r.pod.UID]; m != nil && m.node != "" {
				share--
			}
			said := &term.carriers
			for node, n := range term.silent.byNode {
				if said == &term.carriers {
					said = &group{byNode: maps.Clone(said.byNode)}
				}
				said.byNode[node] += n * t.near
			}
			add(out, l.moved, said, 1, max(share, 1), find)
		case l.inverse:
		case l.matches != nil && term != nil:
			addEvenly(out, l, &term.matched, find)
		case l.matches != nil:
			addEvenly(out, l, s.scan(l.matches), find)
		default:
			addEvenly(out, l, p.groups[l.key], find)
		}
	}
	return out
}

// scan counts the pods of a namespace that a selector selects which no pod that is known names: the pod exists in a
// manifest only, or has come this instant.
func (s *space) scan(matches labels.Selector) *group {
	g := newGroup()
	if s == nil {
		return g
	}
	for _, m := range s.pods {
		if m.node != "" && matches.Matches(labels.Set(m.pod.Labels)) {
			g.add(m.node, 1)
		}
	}
	return g
}

// addEvenly spreads the traffic of a link over the pods of a group.
func addEvenly(out *topology.Tally, l *link, g *group, find func(string) *topology.Place) {
	if g == nil {
		g = &group{}
	}
	total := g.total
	for _, n := range l.moved {
		total += n
	}
	if total > 0 {
		add(out, l.moved, g, l.kibPerHour, total, find)
	}
}

// add counts the pods of a group, each for factor / divisor.
func add(out *topology.Tally, moved map[string]int64, g *group, factor, divisor int64,
	find func(string) *topology.Place) {
	one := func(node string, n int64) {
		if n <= 0 {
			return
		}
		if place := find(node); place != nil {
			out.Add(place, max(n*factor/divisor, 1))
		}
	}
	for node, n := range g.byNode {
		one(node, n+moved[node])
	}
	for node, n := range moved {
		if _, counted := g.byNode[node]; !counted {
			one(node, n)
		}
	}
}
