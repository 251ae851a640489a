package networktopology

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/topology"
)

const (
	gangLabel = "scheduling.x-k8s.io/pod-group"
	appLabel  = "app.kubernetes.io/part-of"
)

// said is what pods exchange: numbers that divide well.
var said = traffic{ofGang: 6000, ofApp: 600}

// talker makes a pod on a node, or on none; key and value of labels follow.
func talker(name, node string, pairs ...string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{},
	}, Spec: v1.PodSpec{NodeName: node}}
	for i := 0; i < len(pairs); i += 2 {
		pod.Labels[pairs[i]] = pairs[i+1]
	}
	return pod
}

// world is what an informer and the plugin know.
type world struct {
	*peers
	store cache.Indexer
}

func newWorld(appLabel string) *world {
	p := newPeers(&read.Gangs{}, appLabel, nil)
	w := &world{p, cache.NewIndexer(cache.MetaNamespaceKeyFunc, p.indexers())}
	p.pods = w.store
	return w
}

// see tells of a pod as it is now.
func (w *world) see(pod *v1.Pod) {
	if podview.Finished(pod) {
		w.lose(pod)
		return
	}
	_ = w.store.Update(pod)
	w.peers.see(nil, pod)
}

// lose tells of a pod that is gone.
func (w *world) lose(pod *v1.Pod) {
	_ = w.store.Delete(pod)
	w.peers.lose(pod)
}

// counted is what a pod exchanges by node.
func (w *world) counted(t rapid.TB, r *relation, nodes ...string) map[string]int64 {
	t.Helper()
	if r == nil {
		return nil
	}
	places := map[string]*topology.Place{}
	for _, node := range nodes {
		places[node] = topology.NewPlace(node, nil)
	}
	tally, err := w.count(r, func(node string) *topology.Place { return places[node] })
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for node, place := range places {
		if n := tally.Split(place)[0]; n != 0 {
			out[node] = n
		}
	}
	return out
}

// talks is what the pod exchanges by node.
func (w *world) talks(t rapid.TB, pod *v1.Pod) map[string]int64 {
	t.Helper()
	return w.counted(t, w.relate(pod, said), "a", "b", "c")
}

func TestTrafficIsCountedWhereThePeersAre(t *testing.T) {
	t.Parallel()
	gone := talker("x", "a", gangLabel, "g")
	gone.Status.Phase = v1.PodSucceeded
	leaving := talker("y", "a", gangLabel, "g")
	leaving.DeletionTimestamp = &metav1.Time{}
	elsewhere := talker("z", "a", gangLabel, "g")
	elsewhere.Namespace = "other"
	nominated := talker("n", "", gangLabel, "g")
	nominated.Status.NominatedNodeName = "b"
	self := talker("p", "", gangLabel, "g")
	self.Status.NominatedNodeName = "c"
	for _, test := range []struct {
		name string
		pods []*v1.Pod
		pod  *v1.Pod
		want map[string]int64
	}{
		{name: "a pod that keeps to itself", pods: []*v1.Pod{talker("q", "a")}, pod: talker("p", "")},
		{name: "the first of a gang", pod: talker("p", "", gangLabel, "g"), want: map[string]int64{}},
		{name: "a gang shares its traffic evenly", pods: []*v1.Pod{talker("q", "a", gangLabel, "g"),
			talker("r", "a", gangLabel, "g"), talker("s", "b", gangLabel, "g"), talker("t", "", gangLabel, "g")},
			pod: talker("p", "", gangLabel, "g"), want: map[string]int64{"a": 4000, "b": 2000}},
		{name: "pods that have ended, or are about to, do not count", pods: []*v1.Pod{gone, leaving},
			pod: talker("p", "", gangLabel, "g"), want: map[string]int64{}},
		{name: "another namespace does not count", pods: []*v1.Pod{elsewhere}, pod: talker("p", "", gangLabel, "g"),
			want: map[string]int64{}},
		{name: "a nominated node counts", pods: []*v1.Pod{nominated}, pod: talker("p", "", gangLabel, "g"),
			want: map[string]int64{"b": 6000}},
		{name: "the pod itself does not", pods: []*v1.Pod{self, talker("q", "a", gangLabel, "g")}, pod: self,
			want: map[string]int64{"a": 6000}},
		{name: "an app", pods: []*v1.Pod{talker("q", "a", appLabel, "shop"), talker("r", "b", appLabel, "blog")},
			pod: talker("p", "", appLabel, "shop"), want: map[string]int64{"a": 600}},
		{name: "a peer on a node that is gone", pods: []*v1.Pod{talker("q", "gone", gangLabel, "g"),
			talker("r", "b", gangLabel, "g")}, pod: talker("p", "", gangLabel, "g"), want: map[string]int64{"b": 3000}},
	} {
		for _, first := range []bool{true, false} {
			p := newWorld(appLabel)
			if first {
				p.see(test.pod)
			}
			for _, pod := range test.pods {
				p.see(pod)
			}
			if diff := cmp.Diff(test.want, p.talks(t, test.pod)); diff != "" {
				t.Errorf("%s, the pod known before: %t (-want +got):\n%s", test.name, first, diff)
			}
		}
	}
}

func TestPodsCountFromReserveOn(t *testing.T) {
	t.Parallel()
	p := newWorld("")
	asker, sibling := talker("p", "", gangLabel, "g"), talker("q", "", gangLabel, "g")
	expect := func(when string, want map[string]int64) {
		t.Helper()
		if diff := cmp.Diff(want, p.talks(t, asker)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	p.see(sibling)
	p.assume(sibling, "a")
	expect("assumed", map[string]int64{"a": 6000})
	changed := sibling.DeepCopy()
	changed.Labels["more"] = "yes"
	p.see(changed)
	expect("changed while it is assumed", map[string]int64{"a": 6000})
	p.release(sibling.UID)
	expect("not bound after all", map[string]int64{})
	p.assume(sibling, "b")
	bound := sibling.DeepCopy()
	bound.Spec.NodeName = "b"
	p.see(bound)
	p.release(sibling.UID)
	expect("bound", map[string]int64{"b": 6000})
	p.lose(bound)
	p.lose(bound)
	expect("deleted twice", map[string]int64{})
	if len(p.assumed) > 0 {
		t.Errorf("left of a pod that is gone: %v", p.assumed)
	}
}

func TestAnAppIsThePodsThatAreLeftOfIt(t *testing.T) {
	t.Parallel()
	p := newWorld(appLabel)
	shop, blog := talker("p", "", appLabel, "shop"), talker("q", "", appLabel, "blog")
	expect := func(when string, ofShop, ofBlog map[string]int64) {
		t.Helper()
		if diff := cmp.Diff([]map[string]int64{ofShop, ofBlog},
			[]map[string]int64{p.talks(t, shop), p.talks(t, blog)}); diff != "" {
			t.Errorf("%s: traffic of pods of both apps (-want +got):\n%s", when, diff)
		}
	}
	first, second := talker("first", "a", appLabel, "shop"), talker("second", "b", appLabel, "shop")
	p.see(first)
	p.see(second)
	expect("two pods of one app", map[string]int64{"a": 300, "b": 300}, map[string]int64{})
	p.lose(first)
	expect("one is gone", map[string]int64{"b": 600}, map[string]int64{})
	p.see(talker("second", "b", appLabel, "blog"))
	expect("the other has changed its app", map[string]int64{}, map[string]int64{"b": 600})
}

func TestMovesOfACycleStayInIt(t *testing.T) {
	t.Parallel()
	p := newWorld("")
	p.see(talker("q", "a", gangLabel, "g"))
	pod := talker("p", "", gangLabel, "g")
	p.see(pod)
	r := p.relate(pod, said)
	of := p.groupsOf(pod)
	scribbled := r.Clone().(*relation)
	scribbled.shift(of, "c", 1)
	again := scribbled.Clone().(*relation)
	again.shift(of, "a", -1)
	again.shift(groups{"another"}, "b", 1)
	for name, test := range map[string]struct {
		of   *relation
		want map[string]int64
	}{
		"the state that was cloned": {r, map[string]int64{"a": 6000}},
		"the clone":                 {scribbled, map[string]int64{"a": 3000, "c": 3000}},
		"a clone of the clone":      {again, map[string]int64{"c": 6000}},
	} {
		if diff := cmp.Diff(test.want, p.counted(t, test.of, "a", "b", "c")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCountsAreThoseOfAScan lets pods come, change, move and go in any order, and compares what is counted with a scan
// of all pods.
func TestCountsAreThoseOfAScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newWorld(appLabel)
		alive := map[types.UID]*v1.Pod{}
		at := map[types.UID]string{}
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			name := fmt.Sprint(rapid.IntRange(0, 7).Draw(t, "pod"))
			old := alive[types.UID(name)]
			switch event := pick("event", "see", "see", "see", "reserve", "release", "delete"); {
			case event == "see":
				pod := talker(name, "", gangLabel, pick("gang", "", "g"), appLabel, pick("part", "", "s"))
				if old != nil && old.Spec.NodeName != "" {
					pod.Spec.NodeName = old.Spec.NodeName // a bound pod stays
				} else {
					pod.Spec.NodeName = pick("node", "", "a", "b", "c")
				}
				if p.see(pod); pod.Spec.NodeName != "" {
					at[pod.UID] = pod.Spec.NodeName
				}
				alive[pod.UID] = pod
			case old == nil:
			case event == "delete":
				p.lose(old)
				delete(alive, old.UID)
				delete(at, old.UID)
			case old.Spec.NodeName != "":
			case event == "reserve":
				at[old.UID] = pick("node", "a", "b", "c")
				p.assume(old, at[old.UID])
			default:
				p.release(old.UID)
				delete(at, old.UID)
			}
		}
		for _, pod := range alive {
			if diff := cmp.Diff(scan(pod, alive, at), p.talks(t, pod)); diff != "" {
				t.Fatalf("pod %s (-scan +counted):\n%s", pod.Name, diff)
			}
		}
		for _, pod := range alive {
			p.lose(pod)
		}
		if len(p.assumed) > 0 {
			t.Fatalf("left of pods that are gone: %v", p.assumed)
		}
	})
}

// scan is what a pod exchanges by node, by what is written in docs and a look at each pod.
func scan(pod *v1.Pod, alive map[types.UID]*v1.Pod, at map[types.UID]string) map[string]int64 {
	out := map[string]int64{}
	related := false
	even := func(amount int64, is func(*v1.Pod) bool) {
		related = true
		found := map[string]int64{}
		var total int64
		for _, other := range alive {
			if node := at[other.UID]; other.UID != pod.UID && node != "" && is(other) {
				found[node]++
				total++
			}
		}
		for node, n := range found {
			out[node] += n * amount / total
		}
	}
	for _, l := range []struct {
		key    string
		amount int64
	}{{gangLabel, said[ofGang]}, {appLabel, said[ofApp]}} {
		if value := pod.Labels[l.key]; value != "" {
			even(l.amount, func(other *v1.Pod) bool { return other.Labels[l.key] == value })
		}
	}
	if !related {
		return nil
	}
	return out
}
