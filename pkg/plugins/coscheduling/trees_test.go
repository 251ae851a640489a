package coscheduling

import (
	"context"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/process/informers"
)

// rootOf answers for native groups that all ask for a minimum.
type rootOf func(podGroup string) string

func (r rootOf) RootOf(_, podGroup string) string { return r(podGroup) }

func (rootOf) Basic(string, string) (basic, known bool) { return false, true }

// The tree of a native group becomes known while a pod of it is looked at, or after that. The pod is in one gang then,
// that of the tree, and so is one that is told of later; a pod of another group stays where it is.
func TestAPodMovesToTheGangOfItsTree(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]bool{"while it is looked at": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				policy := &read.OwnerPolicy{}
				c := newCoordinator(settings{owners: policy}, cache.NewStore(cache.MetaNamespaceKeyFunc), &gpuview.ProfileKeys{},
					informers.Election{})
				pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
					cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				c.members.Lister = corelisters.NewPodLister(pods)
				ctx, cancel := context.WithCancel(t.Context())
				f := newFeed(ctx, c, nil)
				f.ends[""] = true
				var err error
				if c.told.owners, err = status.NewOwners(ctx, memapi.New().RESTConfig(), nil, c.members, events.NewFakeRecorder(10),
					f.applyOwner); err != nil {
					t.Fatal(err)
				}
				asked, known := 0, false
				policy.Trees = rootOf(func(podGroup string) string {
					if asked++; podGroup == "a" && (known || meanwhile && asked > 1) {
						return "job"
					}
					return ""
				})
				see := func(name, podGroup string) {
					pod := st.MakePod().Namespace("default").Name(name).UID(name).Obj()
					pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To(podGroup)}
					if err := pods.Add(pod); err != nil {
						t.Fatal(err)
					}
					f.seeMember(pod)
				}
				see("first", "a")
				known = true
				if !meanwhile {
					see("other", "b")
					f.refile(gang.ID{Namespace: "default", Name: "native.b"}, "a")
					f.refile(gang.ID{Namespace: "default", Name: "native.a"}, "a")
				}
				see("second", "a")
				for id, want := range map[string]int{"composite.job": 2, "native.a": 0} {
					if got := len(c.ledger.Members(gang.ID{Namespace: "default", Name: id})); got != want {
						t.Errorf("gang %s has %d members, want %d", id, got, want)
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
