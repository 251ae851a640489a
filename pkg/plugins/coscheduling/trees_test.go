package coscheduling

import (
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/test/harness/require"
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
				pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
					cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				f, end := feedOf(t, settings{owners: policy}, pods)
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
					require.NoError(t, pods.Add(pod))
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
					if got := len(f.c.ledger.Members(gang.ID{Namespace: "default", Name: id})); got != want {
						t.Errorf("gang %s has %d members, want %d", id, got, want)
					}
				}
				end()
			})
		})
	}
}
