package coscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
)

func TestWhatCameFreeIsSeenUntilGangsHaveBeenLookedAt(t *testing.T) {
	t.Parallel()
	used := gpuPod("used", "a", "6")
	look := func(h *headroom) { h.refresh(); h.answer() }
	for name, test := range map[string]struct {
		happens func(h *headroom)
		// there are the pods that the scheduler has on the node.
		there []*v1.Pod
		want  bool
	}{
		"nothing has happened": {happens: func(*headroom) {}, there: []*v1.Pod{used}},
		"a pod has come":       {happens: func(h *headroom) { h.setPod(gpuPod("new", "a", "1"), gang.ID{}) }, there: []*v1.Pod{used, gpuPod("new", "a", "1")}},
		"a pod has come, of which the account must hear": {happens: func(*headroom) {}, there: []*v1.Pod{used, gpuPod("new", "a", "1")}},
		"a pod has gone": {happens: func(h *headroom) { h.dropPod(used.UID) }, want: true},
		"a pod has gone, of which the account must hear": {happens: func(*headroom) {}, want: true},
		"gangs are being looked at":                      {happens: func(h *headroom) { h.dropPod(used.UID); h.refresh() }, want: true},
		"gangs have been looked at":                      {happens: func(h *headroom) { h.dropPod(used.UID); look(h) }},
		"a pod has gone while they were": {happens: func(h *headroom) {
			h.refresh()
			h.dropPod(used.UID)
			h.answer()
		}, want: true},
		"the node is open again": {happens: func(h *headroom) {
			h.setNode(gpuNode("a", "8").Unschedulable(true).Obj())
			look(h)
			h.setNode(gpuNode("a", "8").Obj())
		}, there: []*v1.Pod{used}, want: true},
		"the node is not known yet": {happens: func(h *headroom) { h.dropNode("a") }, there: []*v1.Pod{used}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHeadroom(unclaimed, allFilters)
			h.setNode(gpuNode("a", "8").Obj())
			h.setPod(used, gang.ID{})
			look(h)
			test.happens(h)
			if got := h.freedUnseen("a", framework.NewNodeInfo(test.there...).GetPods()); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
