package grouptree

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// says is an object of the namespace ns with what it says.
type says struct {
	Key
	Node
}

func TestWhatATreeAsksFor(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60) + ".long"
	for _, tc := range []struct {
		name    string
		objects []says
		want    string
		why     string
	}{
		{name: "all of its groups",
			objects: []says{{composite("job"), Node{Least: 2, Required: "block"}}, {podGroup("a"), Node{Parent: "job", Least: 3}},
				{podGroup("b"), Node{Parent: "job", Least: 1, Required: "rack"}}},
			want: `[{"name":"a","pods":3},{"name":"b","required":"rack","pods":1}]`},
		{name: "groups of groups, and of those that have none nothing",
			objects: []says{{composite("job"), Node{Least: 1}}, {composite("half"), Node{Parent: "job", Least: 1, Required: "rack"}},
				{podGroup("a"), Node{Parent: "half", Least: 3}}, {composite("empty"), Node{Parent: "job", Least: 1}}},
			want: `[{"name":"half","required":"rack","groups":[{"name":"a","pods":3}],"minGroups":1}]`},
		{name: "more groups than one of its groups has",
			objects: []says{{composite("job"), Node{Least: 1}}, {composite("half"), Node{Parent: "job", Least: 2}},
				{podGroup("a"), Node{Parent: "half", Least: 3}}},
			why: "CompositePodGroup half has 1 of the 2 groups that it needs (minGroupCount)"},
		{name: "one of two groups, and the other has too few",
			objects: []says{{composite("job"), Node{Least: 1}}, {composite("half"), Node{Parent: "job", Least: 2}},
				{podGroup("a"), Node{Parent: "half", Least: 3}}, {podGroup("b"), Node{Parent: "job", Least: 1}}},
			want: `[{"name":"job","groups":[{"name":"b","pods":1},{"name":"half","groups":[{"name":"a","pods":3},` +
				`{"name":"half-missing-HASH","pods":1}],"minGroups":2}],"minGroups":1}]`},
		{name: "groups by names that no two have",
			objects: []says{{composite("job"), Node{Least: 1}}, {composite("a"), Node{Parent: "job", Least: 1}},
				{podGroup("a"), Node{Parent: "a", Least: 1}}},
			want: `[{"name":"a-composite-HASH","groups":[{"name":"a","pods":1}],"minGroups":1}]`},
		{name: "groups by names as short as labels",
			objects: []says{{composite("job"), Node{Least: 1}}, {podGroup(long), Node{Parent: "job", Least: 1}}},
			want:    `[{"name":"` + strings.Repeat("x", 54) + `-HASH","pods":1}]`},
	} {
		f := New()
		for _, o := range tc.objects {
			f.Set(o.Key, &o.Node)
		}
		tree := f.Tree("ns", "job")
		if tree.Why != tc.why {
			t.Errorf("%s: it lacks %q, want %q", tc.name, tree.Why, tc.why)
		}
		want := tc.want
		for _, name := range []string{"half.missing", "a.composite", long} {
			short := GroupName(name)
			want = strings.Replace(want, short[:strings.LastIndexByte(short, '-')]+"-HASH", short, 1)
		}
		if got := EncodeGroups(tree.Groups); tc.why == "" && got != want {
			t.Errorf("%s: it asks for (-want +got):\n%s", tc.name, cmp.Diff(want, got))
		}
	}
}

func TestWhatIsDisruptedTogether(t *testing.T) {
	t.Parallel()
	f := New()
	for _, o := range []says{{composite("job"), Node{}}, {composite("half"), Node{Parent: "job", All: true}},
		{podGroup("a"), Node{Parent: "half"}}, {podGroup("b"), Node{Parent: "half", All: true}},
		{podGroup("c"), Node{Parent: "job", All: true}}, {podGroup("d"), Node{Parent: "job"}},
		{podGroup("e"), Node{All: true}}} {
		f.Set(o.Key, &o.Node)
	}
	for podGroup, want := range map[string]string{"a": "CompositePodGroup half", "b": "CompositePodGroup half",
		"c": "PodGroup c", "d": "", "e": "PodGroup e", "unknown": ""} {
		unit, whole, has := f.Unit("ns", podGroup)
		got := ""
		if has {
			got = unit.String()
		}
		if got != want || whole != (podGroup == "e") {
			t.Errorf("%s is disrupted with %q, all of the tree: %t; want %q", podGroup, got, whole, want)
		}
	}
}
