package costoptimized

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/objects"
)

// The counts are those of a recount after any history of pods that an informer may tell.
func TestCountsOfPodsAreThoseOfARecount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRunningPods(gpuview.DefaultKeys(), &read.Gangs{})
		handler := r.counter()
		alive := map[string]*v1.Pod{}
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			name := fmt.Sprintf("pod-%d", rapid.IntRange(0, 5).Draw(t, "pod"))
			before, next := alive[name], drawPod(t, name)
			switch deleted := rapid.Bool().Draw(t, "deleted"); {
			case before == nil:
				handler.OnAdd(next, false)
				alive[name] = next
			case deleted && rapid.Bool().Draw(t, "missed"):
				handler.OnDelete(cache.DeletedFinalStateUnknown{Key: name, Obj: before})
				delete(alive, name)
			case deleted:
				handler.OnDelete(before)
				delete(alive, name)
			default:
				handler.OnUpdate(before, next)
				alive[name] = next
			}
		}
		var withGPU, without int64
		gangs := map[gang.ID]int64{}
		for _, pod := range alive {
			if pod.DeletionTimestamp != nil {
				continue
			}
			if id := (&read.Gangs{}).Of(pod); id.Name != "" {
				gangs[id]++
			}
			switch {
			case pod.Spec.NodeName == "":
			case len(pod.Spec.Containers[0].Resources.Requests) > 0:
				withGPU++
			default:
				without++
			}
		}
		if r.count(true) != withGPU || r.count(false) != without {
			t.Fatalf("counted %d with GPU and %d without, want %d and %d", r.count(true), r.count(false), withGPU, without)
		}
		for _, name := range []string{"a", "b"} {
			id := gang.ID{Namespace: "default", Name: name}
			if got := r.members(id); got != max(gangs[id], 1) {
				t.Fatalf("gang %s has %d members, want %d", name, got, gangs[id])
			}
		}
		if len(r.gangs) != len(gangs) {
			t.Fatalf("%d gangs are remembered, %d exist", len(r.gangs), len(gangs))
		}
	})
}

func drawPod(t *rapid.T, name string) *v1.Pod {
	p := objects.Pod(name, "cpu", "12", "nvidia.com/gpu", "1")
	if !rapid.Bool().Draw(t, "gpu") {
		p.Spec.Containers[0].Resources.Requests = nil
	}
	p.Node(rapid.SampledFrom([]string{"", "n"}).Draw(t, "node"))
	if g := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "gang"); g != "" {
		p.Label("scheduling.x-k8s.io/pod-group", g)
	}
	if rapid.Bool().Draw(t, "terminating") {
		p.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
	}
	return p.Obj()
}
