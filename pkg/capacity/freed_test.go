package capacity

import (
	"testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
)

func TestWhatCameFreeIsSeenUntilGangsHaveBeenLookedAt(t *testing.T) {
	t.Parallel()
	used := gpuPod("used", "a", "6")
	for name, test := range map[string]struct {
		happens func(x *Index)
		want    bool
		// seen is set if gangs are being looked at since.
		seen bool
	}{
		"nothing has happened": {happens: func(*Index) {}},
		"a pod has come": {happens: func(x *Index) {
			x.Feed.SetPod(gpuPod("new", "a", "1"),
				gang.ID{})
		}},
		"a pod has gone": {happens: func(x *Index) { x.Feed.DropPod(used.UID) }, want: true},
		"gangs are being looked at": {
			happens: func(x *Index) { x.Feed.DropPod(used.UID); x.Looks.Refresh() }, want: true, seen: true},
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
		}, want: true},
		"the node is not known yet": {happens: func(x *Index) { x.Feed.DropNode("a") }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := New(&process.Profiles{})
			x.Feed.SetNode(gpuNode("a", "8").Obj())
			x.Feed.SetPod(used, gang.ID{})
			look(x)
			test.happens(x)
			if got := x.Looks.FreedOn("a", x.Looks.Answered()); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
			if got := x.Looks.FreedAfter("a"); got != (test.want && !test.seen) {
				t.Errorf("after the last look: got %t, want %t", got, test.want && !test.seen)
			}
		})
	}
}

func TestWhatCameFreeSinceACycleBegan(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	x.Feed.SetNode(gpuNode("a", "8").Obj())
	x.Feed.SetPod(gpuPod("used", "a", "6"), gang.ID{})
	look(x)
	began := x.Looks.Answered()
	x.Feed.DropPod("used")
	look(x)
	if !x.Looks.FreedOn("a", began) {
		t.Error("what came free in a cycle counts for its pod, because the look at gangs has ended since")
	}
	if x.Looks.FreedOn("a", x.Looks.Answered()) {
		t.Error("what came free before a cycle does not count for its pod")
	}
}

func TestWhatCameFreeForAShape(t *testing.T) {
	t.Parallel()
	x := New(&process.Profiles{})
	x.Feed.SetNode(gpuNode("a", "8").Obj())
	x.Feed.SetPod(gpuPod("most", "a", "6"), gang.ID{})
	x.Feed.SetPod(gpuPod("rest", "a", "2"), gang.ID{})
	look(x)
	small, large := x.Acquire(gpuPod("small", "", "2")), x.Acquire(gpuPod("large", "", "4"))
	answered := x.Looks.Answered()
	x.Feed.DropPod("rest")
	if !x.Looks.FreedFor(small, answered) || x.Looks.FreedFor(large, answered) {
		t.Error("what came free is not told by whom it has room for")
	}
	if look(x); x.Looks.FreedFor(small, x.Looks.Answered()) {
		t.Error("what came free is told again after a look")
	}
}

func look(x *Index) {
	x.Looks.Refresh()
	x.Looks.Answer()
}
