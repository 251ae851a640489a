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
