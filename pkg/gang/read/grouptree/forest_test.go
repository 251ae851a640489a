package grouptree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func podGroup(name string) Key  { return Key{Namespace: "ns", Name: name} }
func composite(name string) Key { return Key{Namespace: "ns", Name: name, Composite: true} }

// planted is an object with what it says.
type planted struct {
	key    Key
	parent string
}

func (p planted) node() *Node { return &Node{Parent: p.parent, Least: 1} }

func TestWhichTreeAPodGroupIsIn(t *testing.T) {
	t.Parallel()
	chain := []planted{{composite("root"), ""}, {composite("upper"), "root"}, {composite("lower"), "upper"},
		{podGroup("g"), "lower"}}
	for _, tc := range []struct {
		name    string
		objects []planted
		root    string
		why     string
		wrong   bool
	}{
		{name: "a group without a parent is in none", objects: []planted{{podGroup("g"), ""}}},
		{name: "a group that is not known is in none", objects: chain[:3]},
		{name: "the topmost one is the root", objects: chain, root: "root"},
		{name: "a parent that does not exist is waited for", objects: []planted{{podGroup("g"), "lower"}},
			why: "CompositePodGroup lower, the parent of PodGroup g, does not exist"},
		{name: "so is one further up", objects: chain[2:],
			why: "CompositePodGroup upper, the parent of CompositePodGroup lower, does not exist"},
		{name: "nor its own parent", objects: []planted{{podGroup("g"), "a"}, {composite("a"), "a"}},
			why: "CompositePodGroup a is its own ancestor (parentCompositePodGroupName)", wrong: true},
		{name: "five are too many above each other",
			objects: []planted{{composite("top"), ""}, {composite("root"), "top"}, chain[1], chain[2], chain[3]},
			why:     "PodGroup g is in a tree of more than 4 levels of groups", wrong: true},
		{name: "groups of other namespaces are no parents",
			objects: []planted{{podGroup("g"), "a"}, {Key{Namespace: "other", Name: "a", Composite: true}, ""}},
			why:     "CompositePodGroup a, the parent of PodGroup g, does not exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, backwards := range []bool{false, true} {
				f := New()
				objects := slices.Clone(tc.objects)
				if backwards {
					slices.Reverse(objects)
				}
				for _, o := range objects {
					f.Set(o.key, o.node())
				}
				why, wrong := f.Why("ns", "g")
				if root := f.RootOf("ns", "g"); root != tc.root || why != tc.why || wrong != tc.wrong {
					t.Errorf("the root is %q (%s, wrong: %v), want %q (%s, %v)", root, why, wrong, tc.root, tc.why, tc.wrong)
				}
			}
		})
	}
}

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	f := New()
	step := func(what string, o planted, gone bool, changes []Change, roots []string) {
		t.Helper()
		node := o.node()
		if gone {
			node = nil
		}
		gotChanges, gotRoots := f.Set(o.key, node)
		if diff := cmp.Diff(changes, gotChanges) + cmp.Diff(roots, gotRoots); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	g, h := planted{podGroup("g"), "a"}, planted{podGroup("h"), "a"}
	step("a PodGroup comes before its parent", g, false, []Change{{PodGroup: "g"}}, nil)
	step("the parent is no root", planted{composite("a"), "r"}, false, []Change{{PodGroup: "g"}}, []string{"a"})
	step("the root comes", planted{composite("r"), ""}, false, []Change{{PodGroup: "g", To: "r"}}, []string{"r"})
	step("another PodGroup comes", h, false, []Change{{PodGroup: "h", To: "r"}}, []string{"r"})
	step("the same is told again", h, false, nil, nil)
	step("a parent goes with groups in it, and stays known", planted{composite("a"), ""}, true,
		[]Change{{PodGroup: "g", From: "r", To: "r"}, {PodGroup: "h", From: "r", To: "r"}}, []string{"a", "r"})
	step("one of that name comes that is a root", planted{composite("a"), ""}, false,
		[]Change{{PodGroup: "g", From: "r", To: "a"}, {PodGroup: "h", From: "r", To: "a"}}, []string{"a", "r"})
	step("a PodGroup goes", g, true, []Change{{PodGroup: "g", From: "a"}}, []string{"a"})
	step("the other one goes", h, true, []Change{{PodGroup: "h", From: "a"}}, []string{"a"})
	step("the root goes", planted{composite("a"), ""}, true, nil, []string{"a"})
	step("the other root goes", planted{composite("r"), ""}, true, nil, []string{"r"})
	basic, least := &Node{Least: 1, Basic: true}, &Node{Least: 1}
	for _, one := range []struct {
		what         string
		node         *Node
		change       Change
		basic, known bool
	}{
		{"a PodGroup comes that asks for no minimum", basic, Change{PodGroup: "b", Told: true}, true, true},
		{"it asks for one now", least, Change{PodGroup: "b", Told: true, WasBasic: true}, false, true},
		{"it asks for none again", basic, Change{PodGroup: "b", Told: true}, true, true},
		{"it goes", nil, Change{PodGroup: "b", Told: true, WasBasic: true}, false, false},
	} {
		changes, _ := f.Set(podGroup("b"), one.node)
		isBasic, known := f.Basic("ns", "b")
		if diff := cmp.Diff([]Change{one.change}, changes); diff != "" || isBasic != one.basic || known != one.known {
			t.Errorf("%s: basic %t, known %t (-want +got):\n%s", one.what, isBasic, known, diff)
		}
	}
	if len(f.nodes) > 0 {
		t.Errorf("what is gone is kept: %v", f.nodes)
	}
}

// TestTheOrderOfObjectsDoesNotMatter has objects come, change and go at random, and compares with a forest that hears
// only of those that are left.
func TestTheOrderOfObjectsDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f, now := New(), map[Key]planted{}
		roots := map[string]string{}
		names := []string{"a", "b", "c", "d"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			o := planted{Key{"ns", rapid.SampledFrom(names).Draw(t, "name"), rapid.Bool().Draw(t, "composite")},
				rapid.SampledFrom(append(names, "")).Draw(t, "parent")}
			// A group that is gone stays as it was while there are groups in it: none goes that has some.
			within := slices.ContainsFunc(names, func(name string) bool {
				return o.key.Composite && (now[podGroup(name)].parent == o.key.Name || now[composite(name)].parent == o.key.Name)
			})
			var node *Node
			if within || rapid.IntRange(0, 3).Draw(t, "goes") > 0 {
				node = o.node()
				now[o.key] = o
			} else {
				delete(now, o.key)
			}
			changes, _ := f.Set(o.key, node)
			for _, c := range changes {
				if c.From != roots[c.PodGroup] {
					t.Fatalf("%s was in %q, and is said to have been in %q", c.PodGroup, roots[c.PodGroup], c.From)
				}
				roots[c.PodGroup] = c.To
			}
		}
		fresh := New()
		for _, o := range now {
			fresh.Set(o.key, o.node())
		}
		for _, name := range names {
			got, want := f.RootOf("ns", name), fresh.RootOf("ns", name)
			if got != want || roots[name] != want {
				t.Fatalf("the root of %s is %q and was told to be %q, want %q", name, got, roots[name], want)
			}
			if diff := cmp.Diff(fresh.Tree("ns", name), f.Tree("ns", name)); diff != "" {
				t.Fatalf("tree %s (-want +got):\n%s", name, diff)
			}
		}
		if len(f.nodes) != len(fresh.nodes) {
			t.Fatalf("%d objects are known, want %d: %v", len(f.nodes), len(fresh.nodes), fmt.Sprint(f.nodes))
		}
	})
}
