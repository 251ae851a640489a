package networktopology

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/topology"
)

// peers finds the pods of a gang or an app and their nodes: bound pods, pods that are assumed from Reserve on, and pods
// with a nominated node. It is safe for concurrent use.
type peers struct {
	gangs    *read.Gangs
	appLabel string
	// pods are those of the informer. Pods with a node are indexed by their groups.
	pods cache.Indexer

	mu sync.RWMutex
	// assumed are the pods that Reserve has put on a node while the informer's pod has none.
	assumed map[types.UID]assumed
}

// assumed is where a pod is assumed to be, and what it belongs to.
type assumed struct {
	node string
	groups
}

// The groups that a pod talks to.
const (
	ofGang = iota
	ofApp
	groupCount
)

// groups are the names of the gang and of the app of a pod; empty where it has none.
type groups [groupCount]string

// traffic is what a pod exchanges with all others of its gang, and of its app.
type traffic [groupCount]int64

// peersOf returns the state that the profiles of the scheduler with the same app label share, connected to the
// informer.
func peersOf(factory kubeinformers.SharedInformerFactory, appLabel string) (*peers, error) {
	return informers.SharedBy(factory, appLabel, func() (*peers, error) {
		informer := factory.Core().V1().Pods().Informer()
		p := newPeers(read.GangsOf(factory), appLabel, informer.GetIndexer())
		if err := informer.AddIndexers(p.indexers()); err != nil {
			return nil, fmt.Errorf("indexing pods by gang and app: %w", err)
		}
		_, err := informers.Handle(factory, informer, informers.Events(p.update, func(pod *v1.Pod) { p.release(pod.UID) }))
		return p, err
	})
}

func newPeers(gangs *read.Gangs, appLabel string, pods cache.Indexer) *peers {
	return &peers{gangs: gangs, appLabel: appLabel, pods: pods, assumed: map[types.UID]assumed{}}
}

// index is the name of the index of pods with a node by group.
func (p *peers) index() string { return Name + "/" + p.appLabel }

func (p *peers) indexers() cache.Indexers {
	return cache.Indexers{p.index(): func(obj any) ([]string, error) {
		if pod, ok := obj.(*v1.Pod); ok && nodeOf(pod) != "" {
			of := p.groupsOf(pod)
			return slices.DeleteFunc(of[:], func(name string) bool { return name == "" }), nil
		}
		return nil, nil
	}}
}

// groupsOf are the gang and the app of a pod.
func (p *peers) groupsOf(pod *v1.Pod) (of groups) {
	if id := p.gangs.Of(pod); id != (gang.ID{}) {
		of[ofGang] = "gang/" + id.Namespace + "/" + id.Name
	}
	if app := pod.Labels[p.appLabel]; p.appLabel != "" && app != "" {
		of[ofApp] = "app/" + pod.Namespace + "/" + app
	}
	return of
}

// update ends the assumption for a pod that is bound, and updates the groups of one that is not.
func (p *peers) update(_, pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, is := p.assumed[pod.UID]
	switch {
	case !is:
	case pod.Spec.NodeName != "":
		delete(p.assumed, pod.UID)
	default:
		p.assumed[pod.UID] = assumed{at.node, p.groupsOf(pod)}
	}
}

// assume puts a pod on the node that was reserved for it.
func (p *peers) assume(pod *v1.Pod, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.assumed[pod.UID] = assumed{node, p.groupsOf(pod)}
}

// release ends the assumption.
func (p *peers) release(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.assumed, uid)
}

// nodeOf is the node of a pod, or its nominated node; "" for none.
func nodeOf(pod *v1.Pod) string {
	switch {
	case podview.Finished(pod):
		return ""
	case pod.DeletionTimestamp != nil:
		return "" // it is about to end, and no pod should be placed near it
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName
	}
	return pod.Status.NominatedNodeName
}

// relation is the groups that a pod talks to.
type relation struct {
	pod   types.UID
	links []link
	// tally is what PreScore counts; nil before. AddPod and RemovePod do not change it, so that all nodes of one
	// comparison are compared by the same count.
	tally *topology.Tally
}

// link is a group of pods that a pod talks to. The fields but moved do not change.
type link struct {
	group string
	// traffic is exchanged with all of them together.
	traffic int64
	// moved is the change of the number of pods by node: planned siblings, and pods that are to be evicted.
	moved map[string]int64
}

// Clone returns a relation of its own.
func (r *relation) Clone() fwk.StateData {
	out := *r
	out.links = slices.Clone(r.links)
	for i := range out.links {
		out.links[i].moved = maps.Clone(out.links[i].moved)
	}
	return &out
}

// relate returns the groups that a pod talks to; nil for none.
func (p *peers) relate(pod *v1.Pod, t traffic) *relation {
	r := &relation{pod: pod.UID}
	for i, group := range p.groupsOf(pod) {
		if group != "" && t[i] > 0 {
			r.links = append(r.links, link{group: group, traffic: t[i], moved: map[string]int64{}})
		}
	}
	if len(r.links) == 0 {
		return nil
	}
	return r
}

// shift adds n pods of these groups to the node, for this relation alone.
func (r *relation) shift(of groups, node string, n int64) {
	for _, l := range r.links {
		if slices.Contains(of[:], l.group) {
			l.moved[node] += n
		}
	}
}

// count sums up the pod's traffic by place: each link's traffic is spread evenly over the pods of the group. find
// returns the place of a node, nil for a node that is gone.
func (p *peers) count(r *relation, find func(node string) *topology.Place) (*topology.Tally, error) {
	out := topology.NewTally()
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, l := range r.links {
		pods, err := p.pods.ByIndex(p.index(), l.group)
		if err != nil {
			return nil, fmt.Errorf("finding the pods of %s: %w", l.group, err)
		}
		byNode := maps.Clone(l.moved)
		for _, obj := range pods {
			pod, ok := obj.(*v1.Pod)
			if !ok || pod.UID == r.pod {
				continue
			}
			if _, moved := p.assumed[pod.UID]; !moved {
				byNode[nodeOf(pod)]++
			}
		}
		for uid, at := range p.assumed {
			if uid != r.pod && slices.Contains(at.groups[:], l.group) {
				byNode[at.node]++
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
	return out, nil
}
