package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// isGone says of a node that its object is gone.
const isGone = "is gone"

// Node is what fails on a node: it leaves.
type Node struct {
	name, leaving string
}

// ReadNode reads what fails on a node.
func ReadNode(node *v1.Node) Node {
	f := Node{name: node.Name}
	switch taint := podview.LeavingTaint(node); {
	case taint != "":
		f.leaving = "has the taint " + taint
	case node.DeletionTimestamp != nil:
		f.leaving = "is being deleted"
	}
	return f
}

// Leaves reports whether the node is about to go.
func (f *Node) Leaves() bool { return f.leaving != "" }

// Under says what fails under a pod of the node, nothing if nothing does.
func (f *Node) Under(pod *v1.Pod) string {
	switch devices := podview.FailingDevices(pod); {
	case f.leaving != "":
		return "node " + f.name + " " + f.leaving
	case len(devices) > 0:
		return fmt.Sprintf("%s of node %s does not work", strings.Join(devices, ", "), f.name)
	}
	return ""
}

// Book owns what is known of hardware that fails under pods.
type Book struct {
	mu sync.Mutex
	// devices are those of each pod that its kubelet calls unhealthy, and nodes are those that leave.
	// changed is set if that has changed since it was asked for.
	devices map[gang.UID][]string
	nodes   map[string]Node
	changed bool
}

// SeePod takes a bound pod as it is now.
func (b *Book) SeePod(pod *v1.Pod) {
	devices := podview.FailingDevices(pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	uid := gang.UID(pod.UID)
	if slices.Equal(b.devices[uid], devices) {
		return
	}
	b.changed = true
	if len(devices) == 0 {
		delete(b.devices, uid)
		return
	}
	if b.devices == nil {
		b.devices = map[gang.UID][]string{}
	}
	b.devices[uid] = devices
}

// ForgetPod drops a pod that has ended or is gone.
func (b *Book) ForgetPod(uid gang.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.devices, uid)
}

// SeeNode takes a node as it is now.
func (b *Book) SeeNode(node *v1.Node) {
	fault := ReadNode(node)
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.nodes[node.Name]
	switch {
	case fault.leaving == before.leaving:
		return
	case fault.leaving == "":
		delete(b.nodes, node.Name)
	default:
		if b.nodes == nil {
			b.nodes = map[string]Node{}
		}
		b.nodes[node.Name] = fault
	}
	b.changed = true
}

// LoseNode notes that a node is gone. Pods stay bound to it until the API server deletes them, so it counts as failing
// until it is dropped.
func (b *Book) LoseNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes == nil {
		b.nodes = map[string]Node{}
	}
	b.nodes[name], b.changed = Node{name: name, leaving: isGone}, true
}

// DropGone drops the nodes that are gone and have no pods left.
func (b *Book) DropGone(hasPods func(node string) bool) {
	nodes, _ := b.Failing()
	for name, node := range nodes {
		if node.leaving != isGone || hasPods(name) {
			continue
		}
		b.mu.Lock()
		if b.nodes[name].leaving == isGone { // it may have come back meanwhile
			delete(b.nodes, name)
		}
		b.mu.Unlock()
	}
}

// Changed reports whether something has changed since it was asked last, and whether anything fails.
func (b *Book) Changed() (changed, fails bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed, b.changed = b.changed, false
	return changed, len(b.devices)+len(b.nodes) > 0
}

// Failing returns the nodes on which something fails, by name, and the pods with devices that do not work.
func (b *Book) Failing() (map[string]Node, []gang.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.nodes), slices.Sorted(maps.Keys(b.devices))
}

// OnNode is what is known of a node on which nothing else fails than devices of its pods.
func OnNode(name string) Node { return Node{name: name} }
