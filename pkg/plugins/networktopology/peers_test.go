package networktopology

import (
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
	"berth.dev/berth/test/harness/require"
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
	w.update(nil, pod)
}

// lose tells of a pod that is gone.
func (w *world) lose(pod *v1.Pod) {
	_ = w.store.Delete(pod)
	w.release(pod.UID)
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
	require.NoError(t, err)
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
// of all pods: of a gang or an app whose pods have ended, are about to go, are only nominated or are on a node that is
// gone.
func TestCountsAreThoseOfAScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newWorld(appLabel)
		alive, assumed := map[types.UID]*v1.Pod{}, map[types.UID]string{}
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			name := pick("pod", "0", "1", "2", "3", "6", "7")
			old := alive[types.UID(name)]
			switch event := pick("event", "see", "see", "see", "reserve", "reserve", "release", "delete"); {
			case event == "see":
				pod := talker(name, "", gangLabel, pick("gang", "g", ""), appLabel, pick("part", "s", ""))
				if name > "5" {
					pod.Namespace = "other"
				}
				if old != nil && old.Spec.NodeName != "" {
					pod.Spec.NodeName = old.Spec.NodeName // a bound pod stays
				} else {
					pod.Spec.NodeName = pick("node", "", "", "", "a", "b", "gone")
					pod.Status.NominatedNodeName = pick("nominated", "", "", "a")
				}
				switch pick("end", "", "", "", "about to go", "ended") {
				case "about to go":
					pod.DeletionTimestamp = &metav1.Time{}
				case "ended":
					pod.Status.Phase = v1.PodSucceeded
					delete(assumed, pod.UID)
				}
				if p.see(pod); pod.Spec.NodeName != "" {
					delete(assumed, pod.UID)
				}
				alive[pod.UID] = pod
			case old == nil:
			case event == "delete":
				p.lose(old)
				delete(alive, old.UID)
				delete(assumed, old.UID)
			case old.Spec.NodeName != "" || old.Status.Phase != "":
			case event == "reserve":
				assumed[old.UID] = pick("node", "a", "b", "c")
				p.assume(old, assumed[old.UID])
			default:
				p.release(old.UID)
				delete(assumed, old.UID)
			}
		}
		for _, pod := range alive {
			if diff := cmp.Diff(scan(pod, alive, assumed), p.talks(t, pod)); diff != "" {
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
func scan(pod *v1.Pod, alive map[types.UID]*v1.Pod, assumed map[types.UID]string) map[string]int64 {
	where := func(other *v1.Pod) string {
		switch node, is := assumed[other.UID]; {
		case is:
			return node
		case other.DeletionTimestamp != nil || other.Status.Phase != "":
			return ""
		case other.Spec.NodeName != "":
			return other.Spec.NodeName
		}
		return other.Status.NominatedNodeName
	}
	out := map[string]int64{}
	related := false
	for _, l := range []struct {
		key    string
		amount int64
	}{{gangLabel, said[ofGang]}, {appLabel, said[ofApp]}} {
		if pod.Labels[l.key] == "" {
			continue
		}
		related = true
		found, total := map[string]int64{}, int64(0)
		for _, other := range alive {
			if node := where(other); other.UID != pod.UID && node != "" && other.Namespace == pod.Namespace &&
				other.Labels[l.key] == pod.Labels[l.key] {
				found[node]++
				total++
			}
		}
		delete(found, "gone")
		for node, n := range found {
			out[node] += n * l.amount / total
		}
	}
	if !related {
		return nil
	}
	return out
}
