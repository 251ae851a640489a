package gangview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/grouptree"
	"berth.dev/berth/pkg/tree"
	"berth.dev/berth/pkg/wellknown"
)

// groupObject reads a group and finds its kind.
func groupObject(t testing.TB, text string) (*OwnerKind, *unstructured.Unstructured) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	kind, known := GroupKindOf(obj.GroupVersionKind())
	if !known {
		t.Fatalf("%s is not a kind of groups", obj.GroupVersionKind())
	}
	return kind, obj
}

func TestGroupsOfOtherSchedulers(t *testing.T) {
	t.Parallel()
	const (
		native  = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: "
		volcano = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: "
		kai     = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: "
		// composite is that of trees of native groups.
		composite = "apiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\nmetadata: {name: g}\nspec: "

		grove = "apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGang\nmetadata: {name: g}\nspec: "
	)
	for _, tc := range []struct {
		name, object string
		want         gang.Minimum
		required     string
		preferred    string
		notKept      string
	}{
		{"a native gang", native + "{schedulingPolicy: {gang: {minCount: 4}}}", gang.Minimum{Total: 4}, "", "", ""},
		{"a native group without a minimum", native + "{schedulingPolicy: {basic: {}}}", gang.Minimum{Total: 1}, "", "", ""},
		{"a native gang with a level, that goes as a whole",
			native + "{schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: {all: {}}, " +
				"schedulingConstraints: {topology: [{key: rack}]}}", gang.Minimum{Total: 4}, "rack", "", ""},
		{"a native gang that is part of a tree",
			native + "{schedulingPolicy: {gang: {minCount: 4}}, parentCompositePodGroupName: all}",
			gang.Minimum{Total: 4}, "", "", ""},
		{"a native group of groups, whose tree is known elsewhere",
			composite + "{schedulingPolicy: {gang: {minGroupCount: 2}}, parentCompositePodGroupName: all, " +
				"schedulingConstraints: {topology: [{key: rack}]}, priorityClassName: high}",
			gang.Minimum{Total: 2}, "rack", "", "not followed: priorityClassName high: the priority of the pods counts"},
		{"a native gang with devices and a priority of its own",
			native + "{schedulingPolicy: {gang: {minCount: 4}}, resourceClaims: [{name: net}], " +
				"priorityClassName: high, preemptionPolicy: Never}", gang.Minimum{Total: 4}, "", "",
			"not followed: resourceClaims: devices are reserved for pods, not for the group; priorityClassName high: the " +
				"priority of the pods counts; " +
				"preemptionPolicy Never: that of the pods counts"},

		{"a group of Volcano", volcano + "{minMember: 4, queue: default, minResources: {cpu: 4}}", gang.Minimum{Total: 4}, "",
			"", ""},
		{"a group of Volcano without a minimum", volcano + "{}", gang.Minimum{Total: 1}, "", "", ""},
		{"tasks that the minimum covers", volcano + "{minMember: 5, minTaskMember: {leader: 1, worker: 3}}",
			gang.Minimum{Total: 5, Roles: map[string]int{"leader": 1, "worker": 3}}, "", "", ""},
		{"tasks that the minimum does not cover mean nothing",
			volcano + "{minMember: 3, minTaskMember: {leader: 1, worker: 3}}",
			gang.Minimum{Total: 3}, "", "", ""},
		{"a queue, tiers and a priority",
			volcano + "{minMember: 4, queue: research, priorityClassName: high, networkTopology: {highestTierAllowed: 1}}",
			gang.Minimum{Total: 4}, "", "",
			"not followed: networkTopology (hard, tier 1): HyperNodes are not read; give the key of a node label, such as " +
				"topology.kubernetes.io/rack, as highestTierName; queue research: Berth has no queues, Kueue has; " +
				"priorityClassName high: the priority of the pods counts"},
		{"tiers that are called after the node labels by which they were found",
			volcano + "{minMember: 4, networkTopology: {mode: soft, highestTierName: example.com/rack}}",
			gang.Minimum{Total: 4}, "", "example.com/rack", ""},
		{"sub-groups count as pods",
			volcano + "{minMember: 4, subGroupPolicy: [{name: parts, subGroupSize: 4, minSubGroups: 2, " +
				"matchLabelKeys: [part]}]}",
			gang.Minimum{Total: 4}, "", "",
			"not followed: subGroupPolicy: the number of pods counts, not in which sub-group they are"},
		{"a group of KAI",
			kai + "{minMember: 4, topologyConstraint: {topology: t, requiredTopologyLevel: zone, preferredTopologyLevel: rack}}",
			gang.Minimum{Total: 4}, "zone", "rack", ""},
		{"levels without a topology mean nothing", kai + "{minMember: 4, topologyConstraint: {requiredTopologyLevel: zone}}",
			gang.Minimum{Total: 4}, "", "", ""},
		{"a group of KAI without a gang", kai + "{minMember: 0}", gang.Minimum{Total: 1}, "", "", ""},
		{"sub-groups of KAI", kai +
			"{minSubGroup: 2, subGroups: [{name: decode, minMember: 2}, {name: prefill, minMember: 1}]}",
			gang.Minimum{Total: 3, Roles: map[string]int{"decode": 2, "prefill": 1}}, "", "", ""},
		{"a tree of sub-groups", kai +
			"{minSubGroup: 1, queue: team, preemptibility: non-preemptible, preemptionDelay: 5m, subGroups: [" +
			"{name: a, minSubGroup: 1}, {name: a1, parent: a, minMember: 2, topologyConstraint: {topology: t, " +
			"requiredTopologyLevel: rack}}, " +
			"{name: a2, parent: a, minMember: 1}, {name: b, minMember: 3}]}",
			gang.Minimum{Total: 1, Roles: map[string]int{},
				Tree: &tree.Group{Least: 1, Groups: []tree.Group{{Name: "sub-groups", Least: 1,
					Roles: map[string]int{}, Groups: []tree.Group{
						{Name: "a", Least: 1, Roles: map[string]int{}, Groups: []tree.Group{
							{Name: "a1", Roles: map[string]int{"a1": 2}, Groups: []tree.Group{}, Required: []string{"rack"}},
							{Name: "a2", Roles: map[string]int{"a2": 1}, Groups: []tree.Group{}}}},
						{Name: "b", Roles: map[string]int{"b": 3}, Groups: []tree.Group{}}}}}}}, "", "",
			"not followed: queue team: Berth has no queues, Kueue has; preemptibility non-preemptible: pods of a higher " +
				"priority " +
				"may evict it; preemptionDelay 5m: preemption does not wait"},
		{"the level of the only sub-group is that of the group",
			kai + "{subGroups: [{name: a, minMember: 2, topologyConstraint: {topology: t, requiredTopologyLevel: rack}}]}",
			gang.Minimum{Total: 2, Roles: map[string]int{"a": 2}}, "rack", "", ""},

		{"a gang of Grove", grove + "{podgroups: [{name: g-decode, minReplicas: 2}, {name: g-prefill, minReplicas: 1}], " +
			"topologyConstraint: {packConstraint: {required: zone, preferred: rack}}}",
			gang.Minimum{Total: 3, Roles: map[string]int{"g-decode": 2, "g-prefill": 1}}, "zone", "rack", ""},
		{"levels of parts of a gang of Grove", grove + "{priorityClassName: high, podgroups: [{name: a, minReplicas: 2, " +
			"topologyConstraint: {packConstraint: {required: rack}}}, " +
			"{name: b, minReplicas: 1}], topologyConstraintGroupConfigs: [{name: ab, podGroupNames: [a, b]}]}",
			gang.Minimum{Total: 3, Roles: map[string]int{"a": 2, "b": 1},
				Tree: &tree.Group{Least: 1, Groups: []tree.Group{{Name: "ab", Least: 2,
					Roles: map[string]int{}, Groups: []tree.Group{
						{Name: "a", Roles: map[string]int{"a": 2}, Groups: []tree.Group{}, Required: []string{"rack"}},
						{Name: "b", Roles: map[string]int{"b": 1}, Groups: []tree.Group{}}}}}}}, "", "",
			"not followed: priorityClassName high: the priority of the pods counts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			kind, obj := groupObject(t, tc.object)
			s := kind.States(obj)[""]
			if s.Why != "" {
				t.Fatalf("it cannot start: %s", s.Why)
			}
			pg := s.PodGroup(gang.ID{Namespace: "ns", Name: "g"})
			spec, err := Spec(pg, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, spec.Minimum); diff != "" {
				t.Errorf("minimum (-want +got):\n%s", diff)
			}
			got := []string{pg.Annotations[wellknown.TopologyRequiredKey], pg.Annotations[wellknown.TopologyPreferredKey],
				s.NotKept()}
			if diff := cmp.Diff([]string{tc.required, tc.preferred, tc.notKept}, got); diff != "" {
				t.Errorf("levels, and what is not followed (-want +got):\n%s", diff)
			}
			if kept := kind.States(kind.Keep(obj))[""]; kept != s {
				t.Errorf("what a dump keeps says %+v, want %+v", kept, s)
			}
		})
	}
}

func TestAnnotationsOfBerthOnAGroupCount(t *testing.T) {
	t.Parallel()
	kind, obj := groupObject(t, "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n"+
		"metadata: {name: g, annotations: {berth.dev/topology-required: rack, "+
		"berth.dev/run-time: 3h, other: x}}\nspec: {minMember: 2}")
	s := kind.States(obj)[""]
	want := map[string]string{"berth.dev/topology-required": "rack", "berth.dev/run-time": "3h"}
	if diff := cmp.Diff(want, s.PodGroup(gang.ID{}).Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestTooManyPartsOfAGroup(t *testing.T) {
	t.Parallel()
	var groups []string
	for i := range 33 {
		groups = append(groups, "{name: g"+strings.Repeat("x", i)+", minReplicas: 1}")
	}
	kind, obj := groupObject(t,
		"apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGang\nmetadata: {name: g}\nspec: {podgroups: ["+
			strings.Join(groups, ", ")+"]}")
	if got, want := kind.States(obj)[""].Why, "Grove PodGang g has 33 parts; a gang has 32 at most"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRolesOfMembersOfGroups(t *testing.T) {
	t.Parallel()
	kind, obj := groupObject(t, "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"+
		"spec: {minMember: 2, minTaskMember: {leader: 1}}")
	s := kind.States(obj)[""]
	pg := s.PodGroup(gang.ID{})
	for name, meta := range map[string]metav1.ObjectMeta{
		"by a label":       {Labels: map[string]string{volcanoTask: "leader"}},
		"by an annotation": {Annotations: map[string]string{volcanoTask: "leader"}},
	} {
		pod := jobPod(0)
		pod.Labels, pod.Annotations = meta.Labels, meta.Annotations
		if got := Role(pod, pg); got != "leader" {
			t.Errorf("%s: role %q, want leader", name, got)
		}
	}
}

// FuzzGroupObject reads any object as each kind of groups.
func FuzzGroupObject(f *testing.F) {
	f.Add(`{"spec": {"minMember": 4, "minTaskMember": {"a": -1}, "networkTopology": {}}}`)
	f.Add(`{"spec": {"subGroups": [{"name": "a", "parent": "a"}], "minSubGroup": "x", "podgroups": {}}}`)
	f.Add(`{"metadata": {"annotations": {"berth.dev/topology-required": "\n"}}, "spec": {"schedulingConstraints": {"topology": [{"key": "a,b"}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil || obj.Object == nil {
			return
		}
		for _, kind := range GroupKinds() {
			obj.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: kind.Versions[0], Kind: kind.Object})
			s := kind.States(obj)[""]
			if s.Minimum < 1 || s.Minimum > maxMinMember {
				t.Errorf("%s: minimum %d", kind.Kind, s.Minimum)
			}
			if s.PodGroup(gang.ID{}) == nil || strings.ContainsAny(s.Why, "\n\r") {
				t.Errorf("%s: %+v", kind.Kind, s)
			}
		}
	})
}

func TestAPodOfATreeIsInTheGangOfItsRoot(t *testing.T) {
	t.Parallel()
	policy := &OwnerPolicy{RootOf: func(namespace, podGroup string) string {
		if namespace == "ns" && podGroup == "a.long" {
			return "job"
		}
		return ""
	}}
	tree := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		wellknown.GroupLabelKey: grouptree.PodField, wellknown.RoleLabelKey: grouptree.PodField,
		wellknown.GroupsKey: "[{name: " + grouptree.GroupName("a.long") + ", pods: 1}]"}}}
	for _, tc := range []struct {
		name, podGroup string
		policy         *OwnerPolicy
		want           string
	}{
		{"a group in a tree", "a.long", policy, "composite.job"},
		{"a group in no tree", "b", policy, "native.b"},
		{"a group by itself", "a.long", nil, "native.a.long"},
		{"a group that the core of the scheduler plans", "a.long",
			&OwnerPolicy{RootOf: policy.RootOf, CorePlansNative: true}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p",
				Labels: map[string]string{wellknown.RoleKey: "worker"}}}
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &tc.podGroup}
			m, err := tc.policy.GangOf(pod)
			if err != nil || m.ID.Name != tc.want {
				t.Errorf("it is in gang %q (%v), want %q", m.ID.Name, err, tc.want)
			}
			var gangs Gangs
			if tc.policy != nil {
				gangs.Follow(tc.policy)
			}
			if stable := gangs.Of(pod).Name; stable != "" && stable != "native."+tc.podGroup {
				t.Errorf("others are told of gang %q, which changes when its tree does", stable)
			}
			if role := Role(pod, tree); role != grouptree.GroupName(tc.podGroup) {
				t.Errorf("its role in a tree is %q, want its group alone", role)
			}
		})
	}
}
