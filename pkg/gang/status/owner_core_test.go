package status

import (
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/test/harness/require"
)

// The groups that the core plans are read by its own informers: of those that may be disrupted as a whole only, the
// topmost around a pod counts.
func TestGroupsOfTheCoreAreDisruptedAsTheySay(t *testing.T) { //nolint:paralleltest // the gates are the process's
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, map[featuregate.Feature]bool{
		features.GenericWorkload: true, features.TopologyAwareWorkloadScheduling: true, features.CompositePodGroup: true})
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	all := &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(
			&schedulingv1beta1.PodGroup{ObjectMeta: meta("loose")},
			&schedulingv1beta1.PodGroup{ObjectMeta: meta("whole"), Spec: schedulingv1beta1.PodGroupSpec{DisruptionMode: all}},
			&schedulingv1beta1.PodGroup{ObjectMeta: meta("part"), Spec: schedulingv1beta1.PodGroupSpec{DisruptionMode: all,
				ParentCompositePodGroupName: ptr.To("around")}},
			&schedulingv1alpha3.CompositePodGroup{ObjectMeta: meta("around"), Spec: schedulingv1alpha3.CompositePodGroupSpec{
				DisruptionMode: &schedulingv1alpha3.CompositeDisruptionMode{
					All: &schedulingv1alpha3.AllCompositeDisruptionMode{}}}})
		factory := informers.NewSharedInformerFactory(client, 0)
		o := &Owners{trees: grouptree.New()}
		require.NoError(t, o.FollowCore(factory))
		factory.Start(t.Context().Done())
		synctest.Wait()
		for podGroup, want := range map[string]string{"loose": "", "whole": "PodGroup whole", "unknown": "",
			"part": "CompositePodGroup around"} {
			pod := &v1.Pod{ObjectMeta: meta("p")}
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &podGroup}
			if with, _ := o.Together(pod); with != want {
				t.Errorf("pods of PodGroup %s go together with %q, want %q", podGroup, with, want)
			}
		}
	})
}
