package kubeview

import (
	"math"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Room is a rough account of what is free on every node, kept from events. It bounds from above how many pods of a kind
// can fit, without the scheduler's snapshot and in a fraction of the time of filters: a gang that does not fit by this
// account does not fit at all, and need not be tried.
type Room struct {
	mu    sync.Mutex
	nodes map[string]*roomNode
	pods  map[types.UID]roomPod
	// offered counts the nodes that offer a resource. One that no node offers is not counted by nodes but handed out in
	// another way, by dynamic resource allocation for instance, and bounds nothing here.
	offered map[v1.ResourceName]int
}

type roomNode struct {
	node *v1.Node
	has  map[v1.ResourceName]int64
	used map[v1.ResourceName]int64
}

type roomPod struct {
	node string
	uses map[v1.ResourceName]int64
}

// NewRoom returns an account without nodes.
func NewRoom() *Room {
	return &Room{nodes: map[string]*roomNode{}, pods: map[types.UID]roomPod{}, offered: map[v1.ResourceName]int{}}
}

// amounts are in thousandths of a CPU and in units of everything else.
func amounts(list v1.ResourceList) map[v1.ResourceName]int64 {
	out := make(map[v1.ResourceName]int64, len(list))
	for name, q := range list {
		if name == v1.ResourceCPU {
			out[name] = q.MilliValue()
		} else {
			out[name] = q.Value()
		}
	}
	return out
}

// at returns the account of the node, which may come after its pods.
func (r *Room) at(name string) *roomNode {
	n := r.nodes[name]
	if n == nil {
		n = &roomNode{used: map[v1.ResourceName]int64{}}
		r.nodes[name] = n
	}
	return n
}

// SetNode records a node.
func (r *Room) SetNode(node *v1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.at(node.Name)
	r.offer(n.has, -1)
	n.node, n.has = node, amounts(node.Status.Allocatable)
	r.offer(n.has, 1)
}

// DropNode forgets a node; its pods are forgotten when they go.
func (r *Room) DropNode(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.nodes[name]; n != nil {
		r.offer(n.has, -1)
		n.node, n.has = nil, nil
		r.tidy(name, n)
	}
}

func (r *Room) offer(has map[v1.ResourceName]int64, by int) {
	for name, q := range has {
		if q > 0 {
			if r.offered[name] += by; r.offered[name] == 0 {
				delete(r.offered, name)
			}
		}
	}
}

func (r *Room) tidy(name string, n *roomNode) {
	if n.node != nil {
		return
	}
	for _, q := range n.used {
		if q != 0 {
			return
		}
	}
	delete(r.nodes, name)
}

// SetPod records a pod that has a node.
func (r *Room) SetPod(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(pod.UID)
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return
	}
	p := roomPod{node: pod.Spec.NodeName, uses: amounts(resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))}
	p.uses[v1.ResourcePods] = 1
	r.pods[pod.UID] = p
	n := r.at(p.node)
	for name, q := range p.uses {
		n.used[name] += q
	}
}

// DropPod forgets a pod.
func (r *Room) DropPod(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(uid)
}

func (r *Room) drop(uid types.UID) {
	p, known := r.pods[uid]
	if !known {
		return
	}
	delete(r.pods, uid)
	n := r.at(p.node)
	for name, q := range p.uses {
		n.used[name] -= q
	}
	r.tidy(p.node, n)
}

// Slots returns how many pods like this one fit on each node at most; nodes on which none fits are left out. With empty
// set, as if no pod was there.
func (r *Room) Slots(pod *v1.Pod, empty bool) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	wants := amounts(resource.PodRequests(pod, resource.PodResourcesOptions{}))
	wants[v1.ResourcePods] = 1
	for name, q := range wants {
		if q == 0 || r.offered[name] == 0 {
			delete(wants, name)
		}
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	out := map[string]int{}
	for node, n := range r.nodes {
		if n.node == nil {
			continue
		}
		slots := int64(math.MaxInt32)
		for name, q := range wants {
			free := n.has[name]
			if !empty {
				free -= n.used[name]
			}
			slots = min(slots, max(free/q, 0))
		}
		if slots == 0 {
			continue
		}
		if ok, err := affinity.Match(n.node); err == nil && !ok {
			continue
		}
		out[node] = int(slots)
	}
	return out
}

// Sum returns how much of a resource all nodes have free together; with empty set, as if no pod was there.
func (r *Room) Sum(name v1.ResourceName, empty bool) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := int64(0)
	for _, n := range r.nodes {
		if n.node == nil {
			continue
		}
		free := n.has[name]
		if !empty {
			free -= n.used[name]
		}
		sum += max(free, 0)
	}
	return sum
}

// Nodes returns the number of nodes.
func (r *Room) Nodes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, node := range r.nodes {
		if node.node != nil {
			n++
		}
	}
	return n
}
