package placementpolicy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// TestNativeGroupsStartWholeOrNotAtAll is about groups of the scheduler's core whose members use licenses.
//
//nolint:tparallel // the parts of the story follow each other on one control plane
func TestNativeGroupsStartWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	box := box.Start(t, regions, sandbox.Options{NoKubelet: true,
		FeatureGates: []string{"GenericWorkload=true"}, RuntimeConfig: []string{"scheduling.k8s.io/v1beta1=true"}})
	client, err := dynamic.NewForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{box, client}
	t.Run("a group waits until there are licenses for all of it", func(t *testing.T) {
		w.mustApply(t, "tools", `{licenses: [{name: matlab, count: 2}]}`)
		w.nativeGroup(t, "g", 3)
		w.refused(t, "g", 3, "2 of 2 in use")
		w.noneBound(t, "g", 3)
		w.mustApply(t, "tools", `{licenses: [{name: matlab, count: 3}]}`)
		w.wholeBound(t, "g", 3)
	})
	t.Run("of two groups one starts and the other follows it", func(t *testing.T) {
		w.nativeGroup(t, "late", 2)
		w.refused(t, "late", 2, "3 of 3 in use")
		w.Remove(t, "g-0")
		w.refused(t, "late", 2, "3 of 3 in use")
		w.noneBound(t, "late", 2)
		w.Remove(t, "g-1")
		w.wholeBound(t, "late", 2)
	})
	t.Run("a single pod counts against a group", func(t *testing.T) {
		for _, name := range []string{"g-2", "late-0", "late-1"} {
			w.Remove(t, name)
		}
		w.run(t, pod("single", "berth.dev/licenses", "matlab").Obj())
		w.Bound(t, "single", "")
		w.nativeGroup(t, "third", 3)
		w.refused(t, "third", 3, "3 of 3 in use")
		w.noneBound(t, "third", 3)
		w.Remove(t, "single")
		w.wholeBound(t, "third", 3)
	})
	t.Run("pools on two nodes are counted each", func(t *testing.T) {
		for i := range 3 {
			w.Remove(t, fmt.Sprint("third-", i))
		}
		w.mustApply(t, "tools", `{licenses: [{name: a, license: matlab, count: 1, nodes: {selector: {matchLabels: {pool: a}}}},
{name: b, license: matlab, count: 1, nodes: {selector: {matchLabels: {pool: b}}}}]}`)
		w.nativeGroup(t, "wide", 3)
		w.refused(t, "wide", 3, "1 of 1 in use")
		w.noneBound(t, "wide", 3)
		w.nativeGroup(t, "fits", 2)
		w.wholeBound(t, "fits", 2)
	})
	t.Run("the count holds over a restart", func(t *testing.T) {
		w.KillScheduler(t)
		w.run(t, pod("after", "berth.dev/licenses", "matlab").Obj())
		w.Pending(t, "after", "1 of 1 in use")
		w.noneBound(t, "wide", 3)
	})
}

// nativeGroup creates a group and its members, each with one license.
func (w *world) nativeGroup(t *testing.T, name string, members int) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(members)}}}}
	if _, err := w.Client.SchedulingV1beta1().PodGroups("default").Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range members {
		p := pod(fmt.Sprint(name, "-", i), "berth.dev/licenses", "matlab").Obj()
		p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		w.run(t, p)
	}
}

// refused waits until a member is told that a license is missing; the others are told of the group.
func (w *world) refused(t *testing.T, name string, members int, reason string) {
	t.Helper()
	w.Await(t, fmt.Sprintf("a member of %s to be pending because %q", name, reason), func(ctx context.Context) (bool, error) {
		for i := range members {
			for _, c := range w.Pod(t, fmt.Sprint(name, "-", i)).Status.Conditions {
				if c.Type == v1.PodScheduled && strings.Contains(c.Message, "without a free license matlab: "+reason) {
					return true, nil
				}
			}
		}
		return false, nil
	})
}

// noneBound watches the members of a group that cannot start.
func (w *world) noneBound(t *testing.T, name string, members int) {
	t.Helper()
	names := make([]string, members)
	for i := range names {
		names[i] = fmt.Sprint(name, "-", i)
	}
	w.NoneBound(t, names...)
}

func (w *world) wholeBound(t *testing.T, name string, members int) {
	t.Helper()
	for i := range members {
		w.Bound(t, fmt.Sprint(name, "-", i), "")
	}
}
