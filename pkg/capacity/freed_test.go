package capacity

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
)

func TestWhatCameFreeIsSeenUntilGangsHaveBeenLookedAt(t *testing.T) {
	t.Parallel()
	used := gpuPod("used", "a", "6")
	look := func(x *Index) { x.Looks.Refresh(); x.Looks.Answer() }
	for name, test := range map[string]struct {
		happens func(x *Index)
		// there are the pods that the scheduler has on the node.
		there []*v1.Pod
		want  bool
	}{
		"nothing has happened": {happens: func(*Index) {}, there: []*v1.Pod{used}},
		"a pod has come": {happens: func(x *Index) {
			x.Feed.SetPod(gpuPod("new", "a", "1"),
				gang.ID{})
		}, there: []*v1.Pod{used, gpuPod("new", "a", "1")}},
		"a pod has come that the index has not seen": {happens: func(*Index) {},
			there: []*v1.Pod{used, gpuPod("new", "a", "1")}},
		"a pod has gone": {happens: func(x *Index) { x.Feed.DropPod(used.UID) }, want: true},
		"a pod has gone, which the index has not seen": {happens: func(*Index) {}, want: true},
		"gangs are being looked at": {
			happens: func(x *Index) { x.Feed.DropPod(used.UID); x.Looks.Refresh() }, want: true},
		"gangs have been looked at": {happens: func(x *Index) { x.Feed.DropPod(used.UID); look(x) }},
		"a pod has gone while they were": {happens: func(x *Index) {
			x.Looks.Refresh()
			x.Feed.DropPod(used.UID)
			x.Looks.Answer()
		}, want: true},
		"the node is open again": {happens: func(x *Index) {
			x.Feed.SetNode(gpuNode("a", "8").Unschedulable(true).Obj())
			look(x)
			x.Feed.SetNode(gpuNode("a", "8").Obj())
		}, there: []*v1.Pod{used}, want: true},
		"the node is not known yet": {happens: func(x *Index) { x.Feed.DropNode("a") }, there: []*v1.Pod{used}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := New(unclaimed, allFilters)
			x.Feed.SetNode(gpuNode("a", "8").Obj())
			x.Feed.SetPod(used, gang.ID{})
			look(x)
			test.happens(x)
			if got := x.Looks.FreedUnseen("a", framework.NewNodeInfo(test.there...).GetPods()); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
