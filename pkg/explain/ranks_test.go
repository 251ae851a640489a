package explain

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

// inRacks are eight members that need a quarter of a node each, and nodes in two racks.
func inRacks(annotations map[string]string, numbered bool) (first *v1.Pod, objects []runtime.Object) {
	for i := range 4 {
		n := node(fmt.Sprintf("n%d", i), "4")
		n.Labels = map[string]string{"topology.kubernetes.io/rack": fmt.Sprintf("r%d", i%2), v1.LabelHostname: n.Name}
		objects = append(objects, n)
	}
	for i := range 8 {
		p := ofGang(fmt.Sprintf("p%d", 7-i), "", "2", "8")
		p.Annotations = annotations
		if numbered {
			p.Labels[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(i)
		}
		objects = append(objects, p)
		if i == 0 {
			first = p
		}
	}
	return first, objects
}

func TestAPlanIsShownByRanks(t *testing.T) {
	t.Parallel()
	segments := map[string]string{wellknown.SegmentSizeKey: "4",
		wellknown.SegmentTopologyKey: "topology.kubernetes.io/rack"}
	for name, tt := range map[string]struct {
		annotations map[string]string
		numbered    bool
		columns     string
		ranks       []string
	}{
		"segments share a rack":    {segments, true, "planned on rack ranks members", []string{"0-1", "2-3", "4-5", "6-7"}},
		"members without a number": {nil, false, "planned on members", nil},
		"a level that is preferred": {map[string]string{wellknown.TopologyPreferredKey: "topology.kubernetes.io/rack"}, true,
			"planned on rack ranks members", []string{"0-1", "2-3", "4-5", "6-7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, objects := inRacks(tt.annotations, tt.numbered)
			e := ask(t, first, objects...)
			if e.Gang == nil || len(e.Gang.Assignments) != 8 {
				t.Fatalf("no plan of 8 members: %+v", e.Gang)
			}
			racks := map[string]map[string]bool{}
			for _, a := range e.Gang.Assignments {
				if (a.Rank != nil) != tt.numbered {
					t.Fatalf("%+v: numbered %t, want %t", a, a.Rank != nil, tt.numbered)
				}
				if a.Rank != nil && a.Pod != "p"+strconv.Itoa(7-*a.Rank) {
					t.Errorf("%s has rank %d", a.Pod, *a.Rank)
				}
				if a.Rank != nil {
					segment := strconv.Itoa(*a.Rank / 4)
					if racks[segment] == nil {
						racks[segment] = map[string]bool{}
					}
					racks[segment][a.Domain] = true
				}
			}
			for segment, in := range racks {
				if len(in) != 1 {
					t.Errorf("segment %s is in the racks %v, want one", segment, in)
				}
			}
			printed := strings.Join(strings.Fields(shown(t, e, tables.Screen{Width: 120}, 0)), " ")
			assert.Contains(t, printed, tt.columns)
			for _, ranks := range tt.ranks {
				assert.Contains(t, printed, " "+ranks+" ")
			}
		})
	}
}

func TestRankRanges(t *testing.T) {
	t.Parallel()
	of := func(numbers ...int) (all []Assignment) {
		for i := range numbers {
			all = append(all, Assignment{Rank: &numbers[i]})
		}
		return all
	}
	for want, ranks := range map[string][]Assignment{"": nil, "3": of(3), "0-7": of(0, 1, 2, 3, 4, 5, 6, 7),
		"0, 2-3, 9": of(0, 2, 3, 9)} {
		assert.Equal(t, "", want, rankRanges(ranks))
	}
	if got := rankRanges(append(of(1), Assignment{})); got != "" {
		t.Errorf("got %q for a member without a rank, want none", got)
	}
}

func TestTheGroupsOfAGangAreShown(t *testing.T) {
	t.Parallel()
	first, objects := inRacks(nil, false)
	for i, object := range objects {
		if p, ok := object.(*v1.Pod); ok {
			p.Labels = map[string]string{schedulingv1alpha1.PodGroupLabel: "g", wellknown.GroupKey: fmt.Sprintf("replica-%d",
				i%2)}
		}
	}
	group := &unstructured.Unstructured{Object: map[string]any{}}
	group.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"))
	group.SetNamespace(first.Namespace)
	group.SetName("g")
	group.SetAnnotations(map[string]string{
		wellknown.GroupsKey: "[{name: replica, copies: 2, pods: 4, required: topology.kubernetes.io/rack}]"})
	e := ask(t, first, append(objects, group)...)
	if e.Gang == nil || len(e.Gang.Assignments) != 8 {
		t.Fatalf("no plan of 8 members: %+v", e.Gang)
	}
	assert.Contains(t, shown(t, e, tables.Screen{Width: 120}, 0), "groups: 2 of 2 replica (4 pods)", "planned on  rack")
}

func TestATreeOfNativeGroupsIsShown(t *testing.T) {
	t.Parallel()
	first, objects := inRacks(nil, false)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: first.Namespace, Name: name} }
	for i, object := range objects {
		if p, ok := object.(*v1.Pod); ok {
			p.Labels, p.Spec.SchedulingGroup = nil, &v1.PodSchedulingGroup{PodGroupName: ptr.To(fmt.Sprintf("half-%d", i%2))}
		}
	}
	job := &schedulingv1alpha3.CompositePodGroup{ObjectMeta: meta("job")}
	job.SetGroupVersionKind(schedulingv1alpha3.SchemeGroupVersion.WithKind("CompositePodGroup"))
	job.Spec.SchedulingPolicy.Gang = &schedulingv1alpha3.CompositeGangSchedulingPolicy{MinGroupCount: 1}
	objects = append(objects, job)
	for _, name := range []string{"half-0", "half-1"} {
		half := &schedulingv1beta1.PodGroup{ObjectMeta: meta(name)}
		half.SetGroupVersionKind(schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"))
		half.Spec.ParentCompositePodGroupName = ptr.To("job")
		half.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}
		half.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: "topology.kubernetes.io/rack"}}}
		objects = append(objects, half)
	}
	e := ask(t, first, objects...)
	if e.Gang == nil || e.Gang.Name != first.Namespace+"/composite.job" || len(e.Gang.Assignments) != 8 {
		t.Fatalf("no plan of 8 members of the tree: %+v", e.Gang)
	}
	assert.Contains(t, shown(t, e, tables.Screen{Width: 120}, 0), "groups: job (1 of half-0 (4 pods), half-1 (4 pods))",
		"planned on  rack")
}

func TestAMemberThatThePlanLeavesOutGoesNowhere(t *testing.T) {
	t.Parallel()
	var objects []runtime.Object
	for name, gpus := range map[string]string{"n0": "4", "n1": "2"} {
		n := node(name, gpus)
		n.Labels = map[string]string{"topology.kubernetes.io/rack": "r-" + name, v1.LabelHostname: n.Name}
		objects = append(objects, n)
	}
	var members []*v1.Pod
	for i := range 3 {
		p := ofGang(fmt.Sprintf("p%d", i), "", "2", "2")
		p.Annotations = map[string]string{wellknown.TopologyRequiredKey: "topology.kubernetes.io/rack"}
		members, objects = append(members, p), append(objects, p)
	}
	left := 0
	for _, p := range members {
		e := ask(t, p, objects...)
		switch {
		case strings.HasSuffix(e.Verdict, "this one on n0."):
		case strings.HasPrefix(e.Verdict, "No node fits: of 2 nodes, "):
			left++
		default:
			t.Errorf("%s %s", p.Name, e.Verdict)
		}
	}
	if left != 1 {
		t.Errorf("%d members are left out, want 1", left)
	}
}
