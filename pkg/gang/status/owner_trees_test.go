package status

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
)

// trees hears of trees, too: which groups are in another gang now.
type treeHearing struct {
	*hearing
	t      *testing.T
	policy read.OwnerPolicy

	mu      sync.Mutex
	refiled []string
}

func hearTrees(t *testing.T, test func(*treeHearing, owners, owners)) {
	t.Helper()
	hear(t, func(t *testing.T, h *hearing) {
		trees := &treeHearing{hearing: h, t: t}
		trees.FollowTrees(&trees.policy, func(from gang.ID, podGroup string) {
			trees.mu.Lock()
			defer trees.mu.Unlock()
			trees.refiled = append(trees.refiled, podGroup+" from "+from.Name)
		})
		of := func(version, resource, kind string) owners {
			client, err := dynamic.NewForConfig(h.api.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}
			gvr := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: version, Resource: resource}
			return owners{client.Resource(gvr).Namespace("default"), t, gvr.GroupVersion().String(), kind}
		}
		test(trees, of("v1beta1", "podgroups", "PodGroup"), of("v1alpha3", "compositepodgroups", "CompositePodGroup"))
	})
}

// says checks the minimum of a gang, or why it has none, and which groups were said to be in another gang.
func (h *treeHearing) says(name string, minimum int, why string, refiled ...string) {
	h.t.Helper()
	time.Sleep(4 * ownerRetry) //nolint:forbidigo // virtual time
	synctest.Wait()
	h.hearing.mu.Lock()
	told := h.told[name]
	h.hearing.mu.Unlock()
	if told.Why != why || why == "" && told.Minimum != minimum {
		h.t.Errorf("gang %s has a minimum of %d (%q), want %d (%q)", name, told.Minimum, told.Why, minimum, why)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.refiled)
	if diff := cmp.Diff(refiled, h.refiled); diff != "" {
		h.t.Errorf("groups in another gang (-want +got):\n%s", diff)
	}
	h.refiled = nil
}

func TestATreeOfNativeGroupsIsFollowed(t *testing.T) {
	t.Parallel()
	const a, b = `{schedulingPolicy: {gang: {minCount: 2}}, parentCompositePodGroupName: half}`,
		`{schedulingPolicy: {gang: {minCount: 3}}, parentCompositePodGroupName: job}`
	hearTrees(t, func(h *treeHearing, groups, composites owners) {
		groups.create("a", a)
		h.owned(h.t, read.NativeGroup, "a")
		h.says("native.a", 0, "CompositePodGroup half, which is around PodGroup a, does not exist")
		composites.create("half", `{schedulingPolicy: {basic: {}}, parentCompositePodGroupName: job}`)
		h.says("native.a", 0, "CompositePodGroup job, which is around CompositePodGroup half, does not exist")
		composites.create("job", `{schedulingPolicy: {gang: {minGroupCount: 2}}}`)
		h.owned(h.t, read.CompositeGroup, "job")
		h.says("composite.job", 0, "CompositePodGroup job has 1 of the 2 groups that it needs (minGroupCount)",
			"a from native.a")
		groups.create("b", b)
		h.says("composite.job", 5, "", "b from native.b")
		groups.patch("a", `{"schedulingPolicy": {"gang": {"minCount": 4}}}`)
		h.says("composite.job", 7, "")
		groups.remove("b")
		h.says("composite.job", 0, "CompositePodGroup job has 1 of the 2 groups that it needs (minGroupCount)",
			"b from composite.job")
		groups.create("b", b)
		h.says("composite.job", 7, "", "b from native.b")
		composites.remove("half") // a tree stays while there are groups in it
		h.says("composite.job", 7, "")
		composites.remove("job")
		h.says("composite.job", 0, "CompositePodGroup default/job, which says how many pods the gang has, does not exist")
		composites.create("job", `{schedulingPolicy: {gang: {minGroupCount: 1}}}`)
		h.says("composite.job", 3, "")
	})
}

func TestATreeIsWaitedForWhileItsKindIsNotServed(t *testing.T) {
	t.Parallel()
	hearTrees(t, func(h *treeHearing, groups, composites owners) {
		composites.create("job", `{schedulingPolicy: {gang: {minGroupCount: 1}}}`)
		groups.create("alone", `{schedulingPolicy: {gang: {minCount: 2}}}`)
		h.owned(h.t, read.NativeGroup, "alone")
		h.says("native.alone", 2, "", "alone from native.alone")
		h.Owners.mu.Lock()
		if len(h.kinds) != 1 {
			h.t.Errorf("%d kinds are watched while no group names a parent, want 1", len(h.kinds))
		}
		h.Owners.mu.Unlock()
		h.api.refuse("compositepodgroups", http.StatusNotFound, metav1.StatusReasonNotFound)
		groups.create("a", `{schedulingPolicy: {gang: {minCount: 2}}, parentCompositePodGroupName: job}`)
		h.owned(h.t, read.NativeGroup, "a")
		h.says("native.a", 0, "cannot read compositepodgroups.scheduling.k8s.io: the cluster does not serve them")
		h.api.refuse("", 0, "")
		h.owned(h.t, read.CompositeGroup, "job")
		h.says("composite.job", 2, "", "a from native.a")
		h.says("native.alone", 2, "")
	})
}
