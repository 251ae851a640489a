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

// PodField is how pods name their PodGroup.
const PodField = "spec.schedulingGroup.podGroupName"

// longestName is the length of the name of a group within a gang.
const longestName = 63

// GroupName is how the group within a gang is called that is a PodGroup or CompositePodGroup of that name: the names of
// groups have no dots, and are shorter than those of objects may be.
func GroupName(name string) string {
	if len(name) <= longestName && !strings.Contains(name, ".") {
		return name
	}
	return Short(strings.ReplaceAll(name, ".", "-"), name, longestName, 4)
}

// Short is the beginning of a name and some bytes of the hash of the whole, which are together no longer than that.
func Short(name, whole string, longest, bytes int) string {
	sum := sha256.Sum256([]byte(whole))
	suffix := "-" + hex.EncodeToString(sum[:bytes])
	return strings.TrimRight(name[:min(len(name), longest-len(suffix))], "-.") + suffix
}

// Tree is what a whole tree asks for.
type Tree struct {
	// Keys are the objects of the tree, each before those in it.
	Keys []Key
	// Groups are those in the root.
	Groups []Group
	// Why says what the tree lacks to be able to start, empty if nothing.
	Why string
}

// Tree returns what the tree of that root asks for.
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

// declaring writes a tree.
type declaring struct {
	f    *Forest
	tree *Tree
	// podGroups are the names of the groups that are PodGroups.
	podGroups map[string]bool
}

// group writes an object and those in it. Short says what it lacks to be able to start, whatever room there is.
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
		// Its groups wait, and those of others do not: one that does not exist has it wait.
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

// Under returns the objects in one, for a tree's status.
func (f *Forest) Under(key Key) (node Node, in []Key) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	e := f.nodes[key]
	if e == nil {
		return Node{}, nil
	}
	return e.Node, sorted(e.in)
}

// Unit returns the topmost object around the pods of a PodGroup, itself included, whose pods may be disrupted together
// only; has is false if there is none. Whole is set if that is all of the tree.
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

// Group is a group within a gang as the annotation berth.dev/groups of a PodGroup has it.
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
	// Alone is set by dialects: no other such group has the domain.
	Alone bool `json:"alone,omitempty"`
}

// EncodeGroups writes the groups so that equal ones are written alike.
func EncodeGroups(groups []Group) string {
	text, _ := json.Marshal(groups) // names and numbers can be written
	return string(text)
}
