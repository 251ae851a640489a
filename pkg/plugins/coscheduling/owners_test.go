package coscheduling

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// feedOf returns the feed of a coordinator with settings over an empty API, which knows the pods, and what ends it.
func feedOf(t *testing.T, s settings, pods cache.Indexer) (f *feed, end func()) {
	t.Helper()
	c := newCoordinator(s, cache.NewStore(cache.MetaNamespaceKeyFunc), &gpuview.ProfileKeys{}, informers.Election{})
	c.members.Lister = corelisters.NewPodLister(pods)
	ctx, cancel := context.WithCancel(t.Context())
	f = newFeed(ctx, c, nil)
	f.ends[""], f.ends["batch.kubernetes.io/job-name"] = true, true
	var err error
	if c.told.owners, err = status.NewOwners(ctx, memapi.New().RESTConfig(), nil, c.members, events.NewFakeRecorder(10),
		f.applyOwner); err != nil {
		t.Fatal(err)
	}
	return f, func() {
		cancel()
		synctest.Wait()
	}
}

// The object of a gang is gone. That is said of the pods that come, also after all of those have gone to which it was
// said.
func TestAnObjectThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, end := feedOf(t, settings{}, cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))
		for _, name := range []string{"first", "second"} {
			pod := st.MakePod().Namespace("default").Name(name).UID(name).Annotation(wellknown.GangKey, "true").Obj()
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "ghost", UID: "ghost",
				Controller: ptr.To(true)}}
			f.seeMember(pod)
			synctest.Wait()
			v, _ := f.c.ledger.View(gang.ID{Namespace: "default", Name: "job.ghost"})
			if diff := cmp.Diff("Job default/ghost, which says how many pods the gang has, does not exist", v.Note); diff != "" {
				t.Errorf("why pod %s waits (-want +got):\n%s", name, diff)
			}
			f.forget(pod)
		}
		end()
	})
}
