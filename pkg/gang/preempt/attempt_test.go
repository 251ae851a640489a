package preempt

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/waiting"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAttempt(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	searched := func(w *attempt) { w.found = &proposal{at: t0} }
	asked := func(w *attempt) { w.awaited, w.idle = make([]*v1.Pod, 2), time.Time{} }
	evicted := func(w *attempt) { asked(w); w.await([]*v1.Pod{podWithGrace("a", 10)}, t0) }
	late := func(w *attempt) { evicted(w); w.ask(1, at(40*time.Second)) }
	for _, tc := range []struct {
		name    string
		happens func(*attempt)
		left    int
		after   time.Duration
		// ask is what to do when the gang does not fit, review what to do as time passes.
		ask, review step
	}{
		{"a new one searches", func(*attempt) {}, 0, 0, toSearch, toWait},
		{"one that is not asked for long ends", func(*attempt) {}, 0, patience + 1, toSearch, toGiveUp},
		{"one search at a time, which ends first", func(w *attempt) { w.searching = true }, 0, time.Hour, toWait, toWait},
		{"a plan is used when the gang has its turn", searched, 0, 20 * time.Second, toUsePlan, toWait},
		{"a plan that is too old is not used", searched, 0, planAge, toSearch, toWait},
		{"pods are awaited while they are evicted, however long that takes", asked, 2, time.Hour, toWait, toWait},
		{"pods are awaited while they terminate", evicted, 2, 40*time.Second - 1, toWait, toWait},
		{"when all have gone, all begins again", evicted, 0, 40 * time.Second, toRestart, toWait},
		{"others are chosen in place of pods that are late", evicted, 1, 40 * time.Second, toChooseOthers, toChooseOthers},
		{"once others may be chosen, victims are searched for", late, 1, 41 * time.Second, toSearch, toWait},
		{"it lasts as long as pods are late", late, 1, time.Hour, toSearch, toWait},
		{"it ends some time after the late ones have gone", late, 0, 41*time.Second + patience, toSearch, toGiveUp},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := attempt{idle: t0}
			tc.happens(&a)
			b := a
			if got := a.ask(tc.left, at(tc.after)); got != tc.ask {
				t.Errorf("asked, it answers %d, want %d", got, tc.ask)
			}
			if got := b.review(tc.left, at(tc.after)); got != tc.review {
				t.Errorf("reviewed, it answers %d, want %d", got, tc.review)
			}
		})
	}
}

func TestAPlanIsLookedForAgainAFewTimes(t *testing.T) {
	t.Parallel()
	var w attempt
	for i, want := range []struct {
		outdated bool
		pause    time.Duration
		again    bool
	}{{false, 0, true}, {true, 2 * outdatedPause, true}, {true, 4 * outdatedPause, true}, {false, 0, false}} {
		if pause, again := w.reject(want.outdated); pause != want.pause || again != want.again {
			t.Errorf("rejection %d: %s, %t; want %s, %t", i, pause, again, want.pause, want.again)
		}
	}
}

func podWithGrace(uid string, seconds int64) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)},
		Spec: v1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: &seconds}}
}

// evictorOf returns an evictor that knows the pods.
func evictorOf(pods ...*v1.Pod) *Evictor {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, pod := range pods {
		if err := store.Add(pod); err != nil {
			panic(err)
		}
	}
	return &Evictor{Members: &members.Directory{Lister: corelisters.NewPodLister(store)}}
}

func TestPodsOfTheSchedulersOwnPreemptionAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	e := evictorOf()
	pods := make([]*v1.Pod, preemptorsAtOnce+2)
	for i := range pods {
		pods[i] = podWithGrace(string(rune('a'+i)), 0)
		e.stockBegins(pods[i])
	}
	seen := map[gang.UID]int{}
	for range 2 {
		for _, ref := range e.Preemptors() {
			seen[ref.UID]++
		}
	}
	if len(seen) != len(pods) {
		t.Errorf("of %d pods, %d were looked at", len(pods), len(seen))
	}
	for _, pod := range pods {
		e.stockEnds(pod)
	}
	if left := e.Preemptors(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestThoseAreAwaitedThatWereEvictedAsLongAsTheyHaveTime(t *testing.T) {
	t.Parallel()
	by, a, b := podWithGrace("by", 0), podWithGrace("a", 20), podWithGrace("b", 5)
	e := evictorOf(a, b)
	nodes := noNodes{}
	e.stockEvicts(by, podWithGrace("early", 5))
	e.stockBegins(by)
	if node, _ := e.awaited(by, nodes, time.Now()); node != "" {
		t.Errorf("a pod waits for node %q before any is evicted", node)
	}
	began := time.Now()
	e.stockEvicts(by, a)
	e.stockEvicts(by, b)
	last := began.Add(20*time.Second + grace)
	if node, _ := e.awaited(by, nodes, last.Add(-1)); node != "n" {
		t.Errorf("it waits for node %q while pods terminate", node)
	}
	if node, _ := e.awaited(by, nodes, last.Add(time.Minute)); node != "" {
		t.Errorf("it waits for node %q when pods are late", node)
	}
	var uids []gang.UID
	for _, pod := range e.work[stockName("ns", "by")].awaited {
		uids = append(uids, gang.UID(pod.UID))
	}
	if diff := cmp.Diff([]gang.UID{"a", "b"}, uids); diff != "" {
		t.Errorf("awaited (-want +got):\n%s", diff)
	}
	e.stockEnds(by)
	if node, _ := e.awaited(by, nodes, began); node != "" {
		t.Errorf("a pod for which none is evicted waits for node %q", node)
	}
}

func TestThoseAreTriedAgainOnceThatMayEvictWhatHasLanded(t *testing.T) {
	t.Parallel()
	e := evictorOf()
	first, second := &request{name: "gang ns/a"}, &request{name: "gang ns/b"}
	for _, r := range []*request{first, second} {
		e.of(r).landing = true
	}
	// What is known of it ends, but not that it waits for the landing.
	e.begin(first)
	if !e.of(first).landing {
		t.Error("an attempt that begins again does not wait for the landing any more")
	}
	e.Inbox = waiting.NewInbox()
	e.Landed()
	for _, r := range []*request{first, second} {
		if e.of(r).landing {
			t.Errorf("%s waits for the next landing as well", r.name)
		}
	}
}

// noNodes lists no node.
type noNodes struct{ fwk.NodeInfoLister }

// Get finds none.
func (noNodes) Get(name string) (fwk.NodeInfo, error) { return nil, errors.New(name) }
