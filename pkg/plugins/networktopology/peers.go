package networktopology

import (
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// peers knows which pods belong together and on which nodes they are, counted by node: the informer's pods, pods that
// are assumed from Reserve on, and pods with a nominated node. A cycle looks up groups and never pods. Pods that belong
// to nothing are followed only in namespaces where a pod names others. It is safe for concurrent use.
type peers struct {
	gangs    *gangview.Gangs
	appLabel string
	// list returns the informer's pods of a namespace.
	list func(namespace string) []*v1.Pod

	mu     sync.RWMutex
	pods   map[types.UID]*member
	groups map[groupKey]*group
	spaces map[string]*space
	// assumed are the nodes of pods that are not followed, from Reserve until the informer tells of them.
	assumed map[types.UID]string
}

// groupKey names a gang or an app.
type groupKey struct {
	app             bool
	namespace, name string
}

// group is where pods that belong together are.
type group struct {
	// key is zero for what a term counts.
	key    groupKey
	byNode map[string]int64
	total  int64
	// members are all that there are, with or without a node.
	members int
}

func (g *group) add(node string, n int64) {
	g.total += n
	if g.byNode[node] += n; g.byNode[node] == 0 {
		delete(g.byNode, node)
	}
}

// space is a namespace.
type space struct {
	// whole reports that all pods of the namespace are followed, and not only those that belong to something.
	whole bool
	pods  map[types.UID]*member
	terms map[string]*term
}

// maxTerms bounds how many selectors of a namespace are followed: each change of a pod is compared with all of them,
// while cycles of others wait. Pods that name further ones are put near those that these select, and not the other way
// round.
const maxTerms = 256

// term is a selector that pods of a namespace name.
type term struct {
	selector string
	matches  labels.Selector
	// matched counts the pods that it selects. Carriers add up what those that name it exchange with these, in KiB an
	// hour; silent counts those of them that do not say, as each profile has its own default.
	matched, carriers, silent group
}

// member is a pod as it was last seen.
type member struct {
	pod *v1.Pod
	// known reports that the informer has told of the pod, and not Reserve alone.
	known bool
	// assumed is the node of Reserve while the informer's pod has none.
	assumed string
	node    string
	groups  []*group
	space   *space
	near    []named
}

// named is a term as a pod names it.
type named struct {
	*term
	kibPerHour int64
}

// peersOf returns the state that the profiles of the scheduler with the same app label share, connected to the
// informer.
func peersOf(factory kubeinformers.SharedInformerFactory, appLabel string) (*peers, error) {
	return informers.SharedBy(factory, appLabel, func() (*peers, error) {
		lister := factory.Core().V1().Pods().Lister()
		p := newPeers(gangview.GangsOf(factory), appLabel, func(namespace string) []*v1.Pod {
			pods, _ := lister.Pods(namespace).List(labels.Everything()) // a lister of a cache has no errors
			return pods
		})
		_, err := informers.Handle(factory, factory.Core().V1().Pods().Informer(), informers.Events[*v1.Pod]{
			Set: func(_, pod *v1.Pod) { p.see(pod) }, Gone: p.lose,
		})
		return p, err
	})
}

func newPeers(gangs *gangview.Gangs, appLabel string, list func(namespace string) []*v1.Pod) *peers {
	return &peers{gangs: gangs, appLabel: appLabel, list: list, pods: map[types.UID]*member{},
		groups: map[groupKey]*group{}, spaces: map[string]*space{}, assumed: map[types.UID]string{}}
}

// follows reports whether a pod is to be counted: it belongs to something, names others, or may be named. The lock is
// held.
func (p *peers) follows(pod *v1.Pod) bool {
	if s := p.spaces[pod.Namespace]; s != nil && s.whole || pod.Annotations[wellknown.NearKey] != "" ||
		len(p.keysOf(pod)) > 0 {
		return true
	}
	return p.pods[pod.UID] != nil
}

// followAll makes all pods of a namespace members from now on: the informer's store has each before it is reserved. The
// lock is held.
func (p *peers) followAll(namespace string) {
	for _, pod := range p.list(namespace) {
		if p.pods[pod.UID] == nil && !podview.Finished(pod) {
			m := p.enrol(pod)
			m.known = true
			m.settle()
		}
	}
	if s := p.spaces[namespace]; s != nil {
		s.whole = true
	}
}

// see takes note of a pod as the informer has it.
func (p *peers) see(pod *v1.Pod) {
	if podview.Finished(pod) {
		p.lose(pod)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.follows(pod) {
		if pod.Spec.NodeName != "" {
			delete(p.assumed, pod.UID)
		}
		return
	}
	m := p.enrol(pod)
	m.known = true
	if pod.Spec.NodeName != "" {
		m.assumed = ""
	}
	m.settle()
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
	if !p.follows(pod) {
		p.assumed[pod.UID] = node
		return
	}
	m := p.pods[pod.UID]
	if m == nil {
		m = p.enrol(pod)
	}
	m.assumed = node
	m.settle()
}

// release takes it off again if it did not get there.
func (p *peers) release(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.pods[uid]; m != nil && m.known {
		m.assumed = ""
		m.settle()
		return
	}
	p.drop(uid)
}

// enrol makes the pod a member of what it belongs to by what it says now.
func (p *peers) enrol(pod *v1.Pod) *member {
	m := p.pods[pod.UID]
	if m != nil {
		if maps.Equal(m.pod.Labels, pod.Labels) && maps.Equal(m.pod.Annotations, pod.Annotations) {
			m.pod = pod
			return m
		}
		p.withdraw(m)
		m.pod = pod
	} else {
		m = &member{pod: pod, assumed: p.assumed[pod.UID]}
		p.pods[pod.UID] = m
		delete(p.assumed, pod.UID)
	}
	p.join(m)
	return m
}

// join enters a member into its groups, without a node.
func (p *peers) join(m *member) {
	pod := m.pod
	for _, key := range p.keysOf(pod) {
		g := p.groups[key]
		if g == nil {
			g = newGroup()
			g.key = key
			p.groups[key] = g
		}
		g.members++
		m.groups = append(m.groups, g)
	}
	s := p.spaces[pod.Namespace]
	if s == nil {
		s = &space{pods: map[types.UID]*member{}, terms: map[string]*term{}}
		p.spaces[pod.Namespace] = s
	}
	m.space = s
	s.pods[pod.UID] = m
	// A pod with a bad value stays pending, or ran before the value had a meaning.
	near, _ := podview.PodNear(pod)
	if len(near) > 0 && !s.whole {
		p.followAll(pod.Namespace)
	}
	for _, n := range near {
		t := s.terms[n.Selector]
		if t == nil && len(s.terms) < maxTerms {
			t = s.open(n)
		}
		if t == nil {
			continue
		}
		t.carriers.members++
		m.near = append(m.near, named{t, n.KiBPerHour})
	}
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

func newGroup() *group { return &group{byNode: map[string]int64{}} }

// selecting are the terms that select the pod.
func (s *space) selecting(pod *v1.Pod) []*term {
	if s == nil {
		return nil
	}
	var found []*term
	for _, t := range s.terms {
		if t.matches.Matches(labels.Set(pod.Labels)) {
			found = append(found, t)
		}
	}
	return found
}

// open makes a term that no pod of the namespace has named before, with all pods that it selects.
func (s *space) open(n podview.Near) *term {
	t := &term{selector: n.Selector, matches: n.Matches, matched: *newGroup(), carriers: *newGroup(), silent: *newGroup()}
	s.terms[n.Selector] = t
	for _, m := range s.pods {
		if m.node != "" && t.matches.Matches(labels.Set(m.pod.Labels)) {
			t.matched.add(m.node, 1)
		}
	}
	return t
}

// settle moves a member to the node where it is, or is to be.
func (m *member) settle() {
	node := m.pod.Spec.NodeName
	switch {
	case m.pod.DeletionTimestamp != nil:
		node = "" // It is about to go, and nothing new should follow it.
	case node == "" && m.assumed != "":
		node = m.assumed
	case node == "":
		node = m.pod.Status.NominatedNodeName
	}
	if node == m.node {
		return
	}
	m.count(-1)
	m.node = node
	m.count(1)
}

// count adds the member to, or takes it from, what is counted on its node.
func (m *member) count(n int64) {
	if m.node == "" {
		return
	}
	for _, g := range m.groups {
		g.add(m.node, n)
	}
	for _, t := range m.space.selecting(m.pod) {
		t.matched.add(m.node, n)
	}
	for _, t := range m.near {
		if t.kibPerHour == 0 {
			t.silent.add(m.node, n)
		} else {
			t.carriers.add(m.node, n*t.kibPerHour)
		}
	}
}

// withdraw takes a member out of all that it belongs to.
func (p *peers) withdraw(m *member) {
	m.count(-1)
	m.node = ""
	for _, g := range m.groups {
		if g.members--; g.members == 0 {
			delete(p.groups, g.key)
		}
	}
	s := p.spaces[m.pod.Namespace]
	for _, t := range m.near {
		if t.carriers.members--; t.carriers.members == 0 {
			delete(s.terms, t.selector)
		}
	}
	m.groups, m.near = nil, nil
	if delete(s.pods, m.pod.UID); len(s.pods) == 0 {
		delete(p.spaces, m.pod.Namespace)
	}
}

func (p *peers) drop(uid types.UID) {
	delete(p.assumed, uid)
	if m := p.pods[uid]; m != nil {
		p.withdraw(m)
		delete(p.pods, uid)
	}
}
