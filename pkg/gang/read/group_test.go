package read

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// groupObject reads a group and finds its kind.
func groupObject(t testing.TB, text string) (*OwnerKind, *unstructured.Unstructured) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
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
		grove   = "apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGang\nmetadata: {name: g}\nspec: "
	)
	for _, tc := range []struct {
		name, object string
		want         gang.Minimum
		required     string
		preferred    string
		notKept      string
	}{
		{"a native group without a minimum", native + "{schedulingPolicy: {basic: {}}}", gang.Minimum{Total: 1}, "", "", ""},
		{"a native gang with a level, that goes as a whole",
			native + "{schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: {all: {}}, " +
				"schedulingConstraints: {topology: [{key: rack}]}}", gang.Minimum{Total: 4}, "rack", "", ""},
		{"a native gang with devices and a priority of its own",
			native + "{schedulingPolicy: {gang: {minCount: 4}}, resourceClaims: [{name: net}], " +
				"priorityClassName: high, preemptionPolicy: Never}", gang.Minimum{Total: 4}, "", "",
			"resourceClaims: devices are reserved for pods, not for the group; preemptionPolicy Never: that of the pods " +
				"counts; priorityClassName high: the priority of the pods counts"},

		{"a group of Volcano", volcano + "{minMember: 4, queue: default, minResources: {cpu: 4}}", gang.Minimum{Total: 4}, "",
			"", ""},
		{"a group of Volcano that others may not evict, whose priority class the pods have",
			"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, annotations: " +
				"{volcano.sh/preemptable: \"false\"}}\nspec: {minMember: 4, priorityClassName: usual}",
			gang.Minimum{Total: 4}, "", "", "volcano.sh/preemptable false: pods of a higher priority may evict it"},
		{"one that says so in a label", "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g, " +
			"labels: {volcano.sh/preemptable: \"false\"}}\nspec: {minMember: 4}",
			gang.Minimum{Total: 4}, "", "", "volcano.sh/preemptable false: pods of a higher priority may evict it"},
		{"one whose annotation says otherwise than its label", "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n" +
			"metadata: {name: g, annotations: {volcano.sh/preemptable: \"true\"}, labels: {volcano.sh/preemptable: " +
			"\"false\"}}\nspec: {minMember: 4}", gang.Minimum{Total: 4}, "", "", ""},
		{"a group of Volcano without a minimum", volcano + "{}", gang.Minimum{Total: 1}, "", "", ""},
		{"tasks that the minimum covers", volcano + "{minMember: 5, minTaskMember: {leader: 1, worker: 3}}",
			gang.Minimum{Total: 5, Roles: map[string]int{"leader": 1, "worker": 3}}, "", "", ""},
		{"a queue, tiers and a priority",
			volcano + "{minMember: 4, queue: research, priorityClassName: high, networkTopology: {highestTierAllowed: 1}}",
			gang.Minimum{Total: 4}, "", "",
			"networkTopology (hard, tier 1): HyperNodes are not read; give the key of a node label, such as " +
				"topology.kubernetes.io/rack, as highestTierName; queue research: Berth has no queues, Kueue has; " +
				"priorityClassName high: the priority of the pods counts"},
		{"sub-groups count as pods",
			volcano + "{minMember: 4, subGroupPolicy: [{name: parts, subGroupSize: 4, minSubGroups: 2, " +
				"matchLabelKeys: [part]}]}",
			gang.Minimum{Total: 4}, "", "",
			"subGroupPolicy: the number of pods counts, not in which sub-group they are"},
		{"a level that may be an alias in a Topology object", kai + "{minMember: 4, priorityClassName: usual, " +
			"stalenessGracePeriod: 30s, topologyConstraint: {topology: t, requiredTopologyLevel: rack}}",
			gang.Minimum{Total: 4}, "rack", "",
			"level rack as an alias: Topology objects are not read, the key of a node label counts; " +
				"stalenessGracePeriod 30s: a group that has lost members is not evicted; " +
				"priority 100, at which KAI evicts no group: pods of a higher priority may evict it"},
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
			"level rack as an alias: Topology objects are not read, the key of a node label counts; " +
				"queue team: Berth has no queues, Kueue has; preemptibility non-preemptible: pods of a higher " +
				"priority " +
				"may evict it; preemptionDelay 5m: preemption does not wait"},
		{"the level of the only sub-group is that of the group",
			kai + "{preemptibility: preemptible, subGroups: [{name: a, minMember: 2, topologyConstraint: {topology: t, " +
				"requiredTopologyLevel: example.com/rack}}]}",
			gang.Minimum{Total: 2, Roles: map[string]int{"a": 2}}, "example.com/rack", "", ""},

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
			"priorityClassName high: the priority of the pods counts"},
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
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, spec.Minimum); diff != "" {
				t.Errorf("minimum (-want +got):\n%s", diff)
			}
			got := []string{pg.Annotations[wellknown.TopologyRequiredKey], pg.Annotations[wellknown.TopologyPreferredKey],
				s.NotKept(&Owner{Class: "usual", Priority: 100})}
			if diff := cmp.Diff([]string{tc.required, tc.preferred, tc.notKept}, got); diff != "" {
				t.Errorf("levels, and what is not followed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(s, kind.States(kind.Keep(obj))[""]); diff != "" {
				t.Errorf("what a dump keeps says something else (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubGroupsOfKAIThatCannotStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, spec, why string }{
		{"a parent that does not exist", "{subGroups: [{name: a, minMember: 2}, {name: b, parent: z, minMember: 1}]}",
			`sub-group "b" is in no group: its parent "z" does not exist, or the parents form a circle`},
		{"parents in a circle", "{subGroups: [{name: a, parent: c}, {name: b, parent: a}, {name: c, parent: b}, {name: d}]}",
			`sub-group "a" is in no group: its parent "c" does not exist, or the parents form a circle`},
		{"two of one name", "{subGroups: [{name: a, minMember: 2}, {name: a, minMember: 1}]}", `two sub-groups are called "a"`},
		{"one within the other", "{subGroups: [{name: a, parent: a}, {name: a}]}", `two sub-groups are called "a"`},
		{"more sub-groups than none", "{minSubGroup: 1}", "minSubGroup is 1, and there are 0 sub-groups without a parent"},
		{"more in a sub-group than it has", "{subGroups: [{name: a, minSubGroup: 2}, {name: b, parent: a, minMember: 1}]}",
			`minSubGroup of sub-group "a" is 2, and it has 1 sub-group`},
	} {
		kind, obj := groupObject(t,
			"apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: "+tc.spec)
		s := kind.States(obj)[""]
		if want := "KAI PodGroup g cannot start: " + tc.why; s.Why != want {
			t.Errorf("%s: got %q, want %q", tc.name, s.Why, want)
		}
		if diff := cmp.Diff(s, kind.States(kind.Keep(obj))[""]); diff != "" {
			t.Errorf("%s: what a dump keeps says something else (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestANativeGroupWithoutAMinimumIsNoGang(t *testing.T) {
	t.Parallel()
	forest := grouptree.New()
	forest.Set(grouptree.Key{Namespace: "ns", Name: "basic"}, &grouptree.Node{Least: 1, Basic: true})
	forest.Set(grouptree.Key{Namespace: "ns", Name: "gang"}, &grouptree.Node{Least: 2})
	labelled := func(pod *v1.Pod) {
		pod.Labels[schedulingv1alpha1.PodGroupLabel] = "mine"
	}
	for _, tc := range []struct {
		name, podGroup string
		policy         *OwnerPolicy
		edit           func(*v1.Pod)
		want           string
		counts         bool
	}{
		{"pods that say nothing else", "basic", &OwnerPolicy{}, func(*v1.Pod) {}, "native.basic", false},
		{"the annotation of a gang", "basic", &OwnerPolicy{}, func(pod *v1.Pod) { asking(pod, "true") }, "job.train", false},
		{"the label of a PodGroup", "basic", &OwnerPolicy{}, labelled, "mine", false},
		{"a group of Kueue", "basic", &OwnerPolicy{}, func(pod *v1.Pod) {
			annotated(annotated(pod, kueueGroup, "g"), kueueCount, "2")
		}, "kueue.g", false},
		{"a policy", "basic", everything(""), func(*v1.Pod) {}, "job.train", false},
		{"a group with a minimum counts before the annotation", "gang", &OwnerPolicy{},
			func(pod *v1.Pod) { asking(pod, "true") }, "native.gang", true},
		{"and before the label", "gang", &OwnerPolicy{}, labelled, "native.gang", true},
		{"one that is not known yet is waited for", "later", &OwnerPolicy{}, labelled, "native.later", false},
		{"the core plans it whatever it says", "basic", &OwnerPolicy{CorePlansNative: true}, labelled, "", true},
	} {
		policy, pod := *tc.policy, jobPod(0)
		policy.Trees = forest
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &tc.podGroup}
		tc.edit(pod)
		m, err := policy.GangOf(pod)
		if err != nil || m.ID.Name != tc.want {
			t.Errorf("%s: it is in gang %q (%v), want %q", tc.name, m.ID.Name, err, tc.want)
		}
		if counts := policy.NativeCounts(pod); counts != tc.counts {
			t.Errorf("%s: the native group alone counts: %t, want %t", tc.name, counts, tc.counts)
		}
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

func TestAPodOfATreeIsInTheGangOfItsRoot(t *testing.T) {
	t.Parallel()
	forest := grouptree.New()
	forest.Set(grouptree.Key{Namespace: "ns", Name: "job", Composite: true}, &grouptree.Node{Least: 1})
	forest.Set(grouptree.Key{Namespace: "ns", Name: "a.long"}, &grouptree.Node{Least: 1, Parent: "job", Basic: true})
	policy := &OwnerPolicy{Trees: forest}
	tree := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		wellknown.GroupLabelKey: grouptree.PodField, wellknown.RoleLabelKey: grouptree.PodField,
		wellknown.GroupsKey: "[{name: " + grouptree.GroupName("a.long") + ", pods: 1}]"}}}
	for _, tc := range []struct {
		name, podGroup string
		policy         *OwnerPolicy
		want           string
	}{
		{"a group in a tree", "a.long", policy, "composite.job"},
		{"a group by itself", "a.long", nil, "native.a.long"},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p",
			Labels: map[string]string{wellknown.RoleKey: "worker"}}}
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &tc.podGroup}
		m, err := tc.policy.GangOf(pod)
		if err != nil || m.ID.Name != tc.want {
			t.Errorf("%s: it is in gang %q (%v), want %q", tc.name, m.ID.Name, err, tc.want)
		}
		var gangs Gangs
		if tc.policy != nil {
			gangs.Follow(tc.policy)
		}
		if stable := gangs.Of(pod).Name; stable != "" && stable != "native."+tc.podGroup {
			t.Errorf("%s: others are told of gang %q, which changes when its tree does", tc.name, stable)
		}
		if role := Role(pod, tree); role != grouptree.GroupName(tc.podGroup) {
			t.Errorf("%s: its role in a tree is %q, want its group alone", tc.name, role)
		}
	}
}
