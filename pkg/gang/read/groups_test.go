package read

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

func TestGroupsOfAGang(t *testing.T) {
	t.Parallel()
	text := `
- name: replica
  copies: 3
  minCopies: 2
  required: example.com/rack
  roles: {prefill: 1}
  groups:
    - {name: decode, pods: 4, preferred: "example.com/clique"}
- {name: router, pods: 1}
`
	copyOf := func(name string) tree.Group {
		return tree.Group{Name: name, Least: 1, Roles: map[string]int{name + "/prefill": 1},
			Required: []string{"example.com/rack"},
			Groups: []tree.Group{{Name: name + ".decode", Roles: map[string]int{name + ".decode": 4},
				Preferred: []string{"example.com/clique"}}}}
	}
	want := &tree.Group{Least: 2, Roles: map[string]int{"leader": 1}, Groups: []tree.Group{
		{Name: "replica", Copies: true, Least: 2,
			Groups: []tree.Group{copyOf("replica-0"), copyOf("replica-1"), copyOf("replica-2")}},
		{Name: "router", Roles: map[string]int{"router": 1}},
	}}
	pg := groupWith(0, map[string]string{wellknown.GroupsKey: text, wellknown.MinMembersByRoleKey: "leader=1"})
	spec, err := Spec(pg, time.Minute)
	require.NoError(t, err)
	if !spec.Minimum.Tree.Equal(want) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, spec.Minimum.Tree))
	}
	if diff := cmp.Diff(map[string]int{"leader": 1, "router": 1}, spec.Minimum.Roles); diff != "" ||
		spec.Minimum.Total != 12 {
		t.Errorf("%d in all, want 12; in any case (-want +got):\n%s", spec.Minimum.Total, diff)
	}
	for labels, want := range map[string]string{
		"replica-0 prefill": "replica-0/prefill", "replica-0.decode ": "replica-0.decode", " leader": "leader", " ": "",
	} {
		group, role, _ := strings.Cut(labels, " ")
		pod := st.MakePod().Labels(map[string]string{wellknown.GroupKey: group, wellknown.RoleKey: role}).Obj()
		if got := Role(pod, pg); got != want {
			t.Errorf("labels %q: role %q, want %q", labels, got, want)
		}
	}
}

func TestGroupsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, says string }{
		{"no list", "replica", `berth.dev/groups: "replica" is not a list of groups in YAML or JSON`},
		{"an empty text", "", `is not a list of groups in YAML or JSON`},
		{"a field that there is not", "[{name: a, pod: 1}]", `unknown field "pod"`},
		{"a name that is no name", "[{name: a.b, pods: 1}]", `berth.dev/groups[0].name: "a.b" is not the value of a label without dots`},
		{"a name twice", "[{name: a, pods: 1}, {name: a, pods: 1}]", `berth.dev/groups[1].name: "a" is not a name that no other group has`},
		{"a name that a copy has", "[{name: a, copies: 2, pods: 1}, {name: a-1, pods: 1}]", `groups[1].name: "a-1" is not a name that no other`},
		{"no copies", "[{name: a, copies: 0, pods: 1}]", `berth.dev/groups[0].copies: "0" is not a whole number from 1 to 512`},
		{"more copies are needed than there are", "[{name: a, copies: 2, minCopies: 3, pods: 1}]", `berth.dev/groups[0].minCopies: "3" is not a whole number from 0 to 2`},
		{"a least number of copies without copies", "[{name: a, minCopies: 1, pods: 1}]", `berth.dev/groups[0].minCopies: "1" is not allowed without copies`},
		{"a label that is none", "[{name: a, pods: 1, required: my rack}]", `berth.dev/groups[0].required: "my rack" is not the key of a node label`},
		{"too many levels", "[{name: a, pods: 1, required: 'a,b,c,d,e', preferred: 'f,g,h,i'}]", `berth.dev/groups[0].preferred: "f,g,h,i" is not allowed: a group and those around it have at most 8 levels`},
		{"nothing in it", "[{name: a}]", `berth.dev/groups[0]: "a" is not a group with pods, roles or groups`},
		{"a negative number", "[{name: a, roles: {x: -1}}]", `berth.dev/groups[0].roles.x: "-1" is not a whole number from 0 to 100000`},
		{"a role that is no label", "[{name: a, roles: {x y: 1}}]", `berth.dev/groups[0].roles: "x y" is not the value of a label`},
		{"too deep", "[{name: a, groups: [{name: b, groups: [{name: c, groups: [{name: d, groups: [{name: e, pods: 1}]}]}]}]}]", `groups are at most 4 deep`},
		{"too many groups", "[{name: a, copies: 200, groups: [{name: b, copies: 200, pods: 1}]}]", `a gang has at most 512 groups, with all copies`},
		{"more groups are needed than there are", "[{name: a, minGroups: 2, groups: [{name: b, pods: 1}]}]", `berth.dev/groups[0].minGroups: "2" is not a whole number from 0 to 1`},
		{"too many pods", "[{name: a, copies: 100, pods: 2000}]", `"200000 pods" is not a whole number from 1 to 100000`},
		{"too long", "[{name: a, pods: 1}]" + strings.Repeat(" ", maxGroupsText), `is not a list of groups of at most 16384 characters`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Spec(groupWith(0, map[string]string{wellknown.GroupsKey: tc.text}), time.Minute)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("error %v, want one that says %q", err, tc.says)
			}
			mustBeAboutAValue(t, err)
		})
	}
	segments := map[string]string{wellknown.GroupsKey: "[{name: a, pods: 1}]", wellknown.SegmentSizeKey: "2",
		wellknown.SegmentTopologyKey: "rack"}
	if _, err := Spec(groupWith(0, segments), time.Minute); err == nil ||
		!strings.Contains(err.Error(), "allowed together with berth.dev/segment-size") {
		t.Errorf("groups with segments: error %v", err)
	}
}
