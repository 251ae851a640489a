package grouptree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// MaxDepth is the largest depth of a tree, including PodGroups, as in Kubernetes.
const MaxDepth = 4

// Key names a PodGroup, or a CompositePodGroup.
type Key struct {
	Namespace, Name string
	Composite       bool
}

// String names the object in messages.
func (k Key) String() string {
	if k.Composite {
		return "CompositePodGroup " + k.Name
	}
	return "PodGroup " + k.Name
}

// Node is what an object declares about its place in a tree.
type Node struct {
	// Parent is the name of the CompositePodGroup around it, empty for none.
	Parent string
	// Least is how many of its pods or groups have to start, at least 1.
	Least int
	// Required are the levels that its pods share, as keys of node labels joined by commas.
	Required string
	// All is set if its pods may be disrupted only together, and Basic if it asks for no minimum.
	All, Basic bool
}

// Change is a PodGroup whose tree may have changed, with the names of the roots before and now, empty for none. Told is
// set if whether it asks for a minimum is new, and WasBasic if it asked for none before.
type Change struct {
	PodGroup, From, To string
	Told, WasBasic     bool
}

// Forest holds the objects. It is safe for concurrent use.
type Forest struct {
	mu    sync.RWMutex
	nodes map[Key]*entry
}

// entry is an object, or one that only its children refer to.
type entry struct {
	Node
	// gone is set if the object was deleted: the entry stays as long as it has children. seen is set once it was read.
	gone, seen bool
	in         map[Key]bool
}

// New returns an empty forest.
func New() *Forest { return &Forest{nodes: map[Key]*entry{}} }

// RootOf returns the name of the topmost CompositePodGroup around a PodGroup, empty if there is none or an object
// between them is not known.
func (f *Forest) RootOf(namespace, podGroup string) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.root(Key{Namespace: namespace, Name: podGroup})
}

// Basic reports whether a PodGroup asks for no minimum and is in no tree; known is false until it was set.
func (f *Forest) Basic(namespace, podGroup string) (basic, known bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e := f.nodes[Key{Namespace: namespace, Name: podGroup}]
	if e == nil || !e.seen {
		return false, false
	}
	return e.Basic && e.Parent == "", true
}

// Set sets an object, or deletes it if node is nil. It returns the PodGroups concerned, and the roots of all trees that
// may declare something else now.
func (f *Forest) Set(key Key, node *Node) (changes []Change, roots []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entry(key)
	old, was := e.Node, e.seen && !e.gone
	wasBasic := was && old.Basic && old.Parent == ""
	leaves := f.leaves(key, map[Key]bool{}) // what the object says does not change what is in it
	for _, leaf := range leaves {
		changes = append(changes, Change{PodGroup: leaf.Name, From: f.root(leaf)})
	}
	if node == nil {
		e.gone = true
	} else {
		if e.Parent != node.Parent {
			f.leave(key, e)
		}
		e.Node, e.gone, e.seen = *node, false, true
		if e.Parent != "" {
			f.entry(parentOf(key, e)).in[key] = true
		}
	}
	if was && !e.gone && old == e.Node {
		return nil, nil
	}
	f.prune(key)
	about := map[string]bool{}
	for i, leaf := range leaves {
		c := &changes[i]
		c.To = f.root(leaf)
		if leaf == key {
			c.WasBasic, c.Told = wasBasic, e.Parent == "" && (!was || old.Basic != e.Basic || e.gone)
		}
		about[c.From], about[c.To] = true, true
	}
	if key.Composite {
		about[key.Name] = true
		if above, _, _ := f.above(key); len(above) > 0 {
			about[above[len(above)-1].Name] = true
		}
	}
	delete(about, "")
	return changes, slices.Sorted(maps.Keys(about))
}

func (f *Forest) entry(key Key) *entry {
	e := f.nodes[key]
	if e == nil {
		e = &entry{in: map[Key]bool{}}
		f.nodes[key] = e
	}
	return e
}

func parentOf(key Key, e *entry) Key {
	return Key{Namespace: key.Namespace, Name: e.Parent, Composite: true}
}

// leave removes the object from its parent.
func (f *Forest) leave(key Key, e *entry) {
	if e.Parent == "" {
		return
	}
	parent := parentOf(key, e)
	if p := f.nodes[parent]; p != nil {
		delete(p.in, key)
		f.prune(parent)
	}
}

// prune removes a deleted object without children, and then its parents in the same way.
func (f *Forest) prune(key Key) {
	if e := f.nodes[key]; e != nil && (e.gone || !e.seen) && len(e.in) == 0 {
		delete(f.nodes, key)
		f.leave(key, e)
	}
}

// leaves returns the PodGroups in an object, or the PodGroup itself.
func (f *Forest) leaves(key Key, seen map[Key]bool) []Key {
	if !key.Composite {
		return []Key{key}
	}
	e := f.nodes[key]
	if e == nil || seen[key] {
		return nil
	}
	seen[key] = true
	var leaves []Key
	for _, in := range sorted(e.in) {
		leaves = append(leaves, f.leaves(in, seen)...)
	}
	return leaves
}

func sorted(keys map[Key]bool) []Key {
	return slices.SortedFunc(maps.Keys(keys), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), strings.Compare(a.String(), b.String()))
	})
}

// above returns the objects around one, the nearest first. If they do not end in a root, why is the reason, and wrong
// is set if no further object can change that.
func (f *Forest) above(key Key) (above []Key, why string, wrong bool) {
	at := key
	for e := f.nodes[key]; e != nil && e.Parent != ""; e = f.nodes[at] {
		parent := parentOf(key, e)
		p := f.nodes[parent]
		switch {
		case p == nil || !p.seen:
			return nil, fmt.Sprintf("%s, the parent of %s, does not exist", parent, at), false
		case parent == key || slices.Contains(above, parent):
			return nil, fmt.Sprintf("%s is its own ancestor (parentCompositePodGroupName)", parent), true
		case len(above) == MaxDepth-1:
			return nil, fmt.Sprintf("%s is in a tree of more than %d levels of groups", key, MaxDepth), true
		}
		above, at = append(above, parent), parent
	}
	return above, "", false
}

// root returns the name of the root of a PodGroup, empty for none.
func (f *Forest) root(leaf Key) string {
	above, why, _ := f.above(leaf)
	if why != "" || len(above) == 0 {
		return ""
	}
	return above[len(above)-1].Name
}

// Why returns why a PodGroup with a parent is in no tree, empty if it is in one. wrong is set if the reason is not a
// missing object.
func (f *Forest) Why(namespace, podGroup string) (why string, wrong bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	_, why, wrong = f.above(Key{Namespace: namespace, Name: podGroup})
	return why, wrong
}
