package coscheduling

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// The gang's members carry its minimum themselves, and its PodGroup stands in for it or cannot be read.
func TestGangIsLookedAtAgainAfterAnAnnotation(t *testing.T) {
	t.Parallel()
	group := func(annotations map[string]string) *schedulingv1alpha1.PodGroup {
		pg := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g",
			Annotations: map[string]string{wellknown.StandInKey: "1"}}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}}
		for key, value := range annotations {
			pg.Annotations[key] = value
		}
		return pg
	}
	rack := map[string]string{wellknown.TopologyRequiredKey: "rack"}
	for _, tc := range []struct {
		name    string
		happens func(f *feed)
		want    bool
	}{
		{"one that says where members may be is added", func(f *feed) { f.seeGroup(group(nil), group(rack)) }, true},
		{"one is removed", func(f *feed) { f.seeGroup(group(rack), group(nil)) }, true},
		{"one that means nothing here is added",
			func(f *feed) { f.seeGroup(group(nil), group(map[string]string{"example.com/mine": "1"})) }, false},
		{"a PodGroup comes that says where members may be", func(f *feed) { f.seeGroup(nil, group(rack)) }, true},
		{"a PodGroup comes that says nothing of it", func(f *feed) { f.seeGroup(nil, group(nil)) }, false},
		{"a PodGroup goes that said where members may be", func(f *feed) { f.loseGroup(group(rack)) }, true},
		{"one is corrected in a PodGroup that cannot be read", func(f *feed) {
			bad := map[string]string{wellknown.BackfillKey: "maybe", wellknown.TopologyRequiredKey: "rack"}
			f.seeGroup(group(map[string]string{wellknown.BackfillKey: "maybe"}), group(bad))
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newCoordinator(settings{}, cache.NewStore(cache.MetaNamespaceKeyFunc), &gpuview.ProfileKeys{},
				informers.Election{})
			c.members.Lister = corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))
			id := gang.ID{Namespace: "ns", Name: "g"}
			c.ledger.Observe(id, gang.Member{Ref: gang.Ref{UID: "m", Namespace: "ns", Name: "m"}, State: gang.Pending,
				Class: "c", Ours: true, Minimum: 1}, time.Now())
			c.ledger.Agenda.Changed()
			tc.happens(newFeed(t.Context(), c, nil))
			if got := c.ledger.Agenda.Changed()[id]; got != tc.want {
				t.Errorf("the gang is looked at again: %v, want %v", got, tc.want)
			}
		})
	}
}
