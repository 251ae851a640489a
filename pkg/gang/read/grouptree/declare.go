package grouptree

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/pkg/plural"
)

// PodField is the field of pods with the name of their native PodGroup.
const PodField = "spec.schedulingGroup.podGroupName"

// longestName is the length of the name of a group within a gang.
const longestName = 63

// GroupName returns the name within the gang of a PodGroup or CompositePodGroup: names of groups have no dots, and are
// shorter than names of objects.
func GroupName(name string) string {
	if len(name) <= longestName && !strings.Contains(name, ".") {
		return name
	}
	return Short(strings.ReplaceAll(name, ".", "-"), name, longestName, 4)
}

// Short returns the beginning of a name with some bytes of the hash of whole, not longer than longest.
func Short(name, whole string, longest, bytes int) string {
	sum := sha256.Sum256([]byte(whole))
	suffix := "-" + hex.EncodeToString(sum[:bytes])
	return strings.TrimRight(name[:min(len(name), longest-len(suffix))], "-.") + suffix
}

// Tree is what a tree declares.
type Tree struct {
	// Keys are the objects of the tree, each before those in it.
	Keys []Key
	// Groups are the groups in the root.
	Groups []Group
	// Why is the message about what is missing before the tree can start, empty for nothing.
	Why string
}

// Tree returns what the tree of the root declares.
func (f *Forest) Tree(namespace, root string) Tree {
	f.mu.RLock()
	defer f.mu.RUnlock()
	key := Key{Namespace: namespace, Name: root, Composite: true}
	if f.nodes[key] == nil {
		return Tree{}
	}
	var t Tree
	leaves := f.leaves(key, map[Key]bool{})
	d := declaring{f: f, tree: &t, podGroups: map[string]bool{}}
	for _, leaf := range leaves {
		d.podGroups[GroupName(leaf.Name)] = true
	}
	all, short := d.group(key, 1)
	t.Why = short
	t.Groups = all.Groups
	if *all.MinGroups < len(all.Groups) {
		all.Required = ""
		t.Groups = []Group{all}
	}
	return t
}

// declaring builds a Tree.
type declaring struct {
	f    *Forest
	tree *Tree
	// podGroups are the names of the groups that are PodGroups.
	podGroups map[string]bool
}

// group returns an object with those in it. short is the message about what is missing before it can start, however
// much capacity is free.
func (d *declaring) group(key Key, depth int) (g Group, short string) {
	e := d.f.nodes[key]
	d.tree.Keys = append(d.tree.Keys, key)
	g = Group{Name: GroupName(key.Name), Required: e.Required}
	if !key.Composite {
		pods := e.Least
		g.Pods = &pods
		return g, ""
	}
	if d.podGroups[g.Name] {
		g.Name = GroupName(key.Name + ".composite")
	}
	whole, first := 0, ""
	for _, in := range sorted(e.in) {
		if in.Composite && (depth+1 == MaxDepth || len(d.f.leaves(in, map[Key]bool{})) == 0) {
			continue
		}
		one, lacks := d.group(in, depth+1)
		g.Groups = append(g.Groups, one)
		if lacks == "" {
			whole++
		} else {
			first = cmp.Or(first, lacks)
		}
	}
	if whole < e.Least {
		short = cmp.Or(first, fmt.Sprintf("%s has %d of the %s that it needs (minGroupCount)", key, whole,
			plural.Of(e.Least, "group")))
		// A group without pods makes it wait, without its siblings.
		missing := 1
		g.Groups = append(g.Groups, Group{Name: GroupName(key.Name + ".missing"), Pods: &missing})
	}
	least := min(e.Least, len(g.Groups))
	if short != "" {
		least = len(g.Groups)
	}
	g.MinGroups = &least
	return g, short
}

// Under returns an object and the keys of those in it.
func (f *Forest) Under(key Key) (node Node, in []Key) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e := f.nodes[key]
	if e == nil {
		return Node{}, nil
	}
	return e.Node, sorted(e.in)
}

// Unit returns the topmost object around the pods of a PodGroup, which may be the PodGroup, whose pods may be disrupted
// only together; has is false if there is none. whole is set if that is the whole tree.
func (f *Forest) Unit(namespace, podGroup string) (unit Key, whole, has bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	key := Key{Namespace: namespace, Name: podGroup}
	above, _, _ := f.above(key)
	for _, at := range slices.Backward(append([]Key{key}, above...)) {
		if e := f.nodes[at]; e != nil && e.All {
			return at, e.Parent == "", true
		}
	}
	return Key{}, false, false
}

// Group is a group within a gang in the annotation berth.dev/groups of a PodGroup.
type Group struct {
	Name      string         `json:"name"`
	Copies    *int           `json:"copies,omitempty"`
	MinCopies *int           `json:"minCopies,omitempty"`
	Required  string         `json:"required,omitempty"`
	Preferred string         `json:"preferred,omitempty"`
	Pods      *int           `json:"pods,omitempty"`
	Roles     map[string]int `json:"roles,omitempty"`
	Groups    []Group        `json:"groups,omitempty"`
	MinGroups *int           `json:"minGroups,omitempty"`
	// Alone is set for groups of other projects that share their domain with no other such group.
	Alone bool `json:"alone,omitempty"`
}

// EncodeGroups encodes the groups; equal ones have equal text.
func EncodeGroups(groups []Group) string {
	text, _ := json.Marshal(groups) // names and numbers can be written
	return string(text)
}
