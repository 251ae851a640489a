package dump

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/wellknown"
)

func TestAHashedGangGrowsByTheSameSteps(t *testing.T) {
	t.Parallel()
	const groups = "[{name: acme, copies: 4, minCopies: 1, pods: 1}, {name: router, roles: {leader: 1}}]"
	for _, says := range []map[string]string{
		{wellknown.GrowByKey: "8", wellknown.SegmentSizeKey: "4", wellknown.SegmentTopologyKey: "example.com/rack"},
		{wellknown.GrowByKey: "double"},
		{wellknown.GrowByKey: "acme=2,leader=1", wellknown.MinMembersByRoleKey: "acme=1,leader=1"},
		{wellknown.GrowByKey: "acme=2,router/leader=1", wellknown.GroupsKey: groups},
	} {
		pg := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "ns", Annotations: says}}
		pg.TypeMeta = metav1.TypeMeta{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup"}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pg)
		if err != nil {
			t.Fatal(err)
		}
		out, err := NewNameHasher([]byte("key"), usualKeys()).Hash(&unstructured.Unstructured{Object: content})
		if err != nil {
			t.Fatal(err)
		}
		hashed := &schedulingv1alpha1.PodGroup{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(out.(*unstructured.Unstructured).Object,
			hashed); err != nil {
			t.Fatal(err)
		}
		next := func(pg *schedulingv1alpha1.PodGroup) int {
			spec, err := gangview.Spec(pg, 0)
			size, read := steps.Parse(pg.Annotations[wellknown.GrowByKey])
			if err != nil || !read {
				t.Fatalf("%v is %v", says, err)
			}
			return steps.Ladder{Minimum: spec.Minimum, By: size}.At(1).Total
		}
		if was, is := next(pg), next(hashed); was != is {
			t.Errorf("%v: the first step needs %d members, with its names hashed %d: %v", says, was, is, hashed.Annotations)
		}
		if was, is := says[wellknown.SegmentSizeKey], hashed.Annotations[wellknown.SegmentSizeKey]; was != is {
			t.Errorf("segments of %s are of %s", was, is)
		}
		if strings.Contains(hashed.Annotations[wellknown.GrowByKey], "router") {
			t.Errorf("the names of groups are kept: %v", hashed.Annotations)
		}
	}
}
