package gpuaware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/await"
)

// activator takes the place of the scheduling queue.
type activator struct{ pods chan string }

func (a activator) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for name := range pods {
		a.pods <- name
	}
}

func TestPodsThatAFaultKeptPendingAreTriedAgainWhenItIsOver(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("parsing query: %v", err)
		}
		samples := ""
		if strings.Contains(r.Form.Get("query"), "DCGM_FI_DEV_ROW_REMAP_FAILURE") && !over.Load() {
			samples = sample("row_remap", "a", 0, 1)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, samples)
	}))
	t.Cleanup(server.Close)
	node := gpuNodeObject("a", 2, "Tesla-T4", "nvidia.com/gpu.count", "6", "nvidia.com/gpu.replicas", "4")
	node.Status.Allocatable["nvidia.com/gpu.shared"] = resource.MustParse("16")
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), node)
	queue := activator{make(chan string, 10)}
	h.SetPodActivator(queue)
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { return len(s.Faults("a", time.Now())) > 0 })
	for name, asks := range map[string]strs{
		"kept-off": {"nvidia.com/gpu": "2"}, "too-large": {"nvidia.com/gpu": "3"}, "gone": {"nvidia.com/gpu": "2"},
		"kept-off-the-second-resource": {"nvidia.com/gpu.shared": "16"},
	} {
		pod := h.add(t, podObject(name, asks, nil))
		await.Until(t, "the pod to be known",
			func() bool { _, known, _ := h.plugin.cluster.faulted.pods.GetByKey("default/" + name); return known })
		if _, _, err := h.evaluate(t, h, pod); err == nil {
			t.Fatalf("pod %s fits a node with a faulty GPU", name)
		}
	}
	h.plugin.cluster.faulted.forget("gone")
	over.Store(true)
	for range 2 {
		if name := await.Next(t, queue.pods, "both pods that were kept off to be tried again"); !strings.HasPrefix(name,
			"default/kept-off") {
			t.Errorf("pod %s is tried again, want only those that were kept off", name)
		}
	}
	if more := h.plugin.cluster.faulted.take(); len(more) > 0 || len(queue.pods) > 0 {
		t.Errorf("pods %v and %d more are remembered or tried", more, len(queue.pods))
	}
}

func TestWhatANodeReportsWakesThePodsThatItHelps(t *testing.T) {
	t.Parallel()
	const links = "berth.dev/gpu-links"
	const bridges = `{"links":[[0,1,"NV12"],[2,3,"NV12"]]}`
	linked := podObject("linked", strs{"nvidia.com/gpu": "2"}, strs{"berth.dev/gpu-interconnect": "required"})
	for name, tc := range map[string]struct {
		pod           *v1.Pod
		before, after strs
		want          fwk.QueueingHint
	}{
		"links appear": {linked, strs{links: `{"links":[]}`}, strs{links: bridges}, fwk.Queue},
		"links vanish": {linked, strs{links: bridges}, strs{links: `{"links":[]}`}, fwk.QueueSkip},
		"an annotation of another": {linked, strs{links: bridges}, strs{links: bridges, "example.com/a": "b"},
			fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()))
			before, after := gpuNodeObject("n", 4, ""), gpuNodeObject("n", 4, "")
			before.Annotations, after.Annotations = tc.before, tc.after
			got, err := h.plugin.afterNodeChange(h.logger, tc.pod, before, after)
			if err != nil || got != tc.want {
				t.Errorf("hint %v, error %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestNodeAnnotationsAreAmongTheEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()))
	events, err := h.plugin.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Event.Resource == fwk.Node && e.Event.ActionType&fwk.UpdateNodeAnnotation != 0 {
			return
		}
	}
	t.Error("a change of a node's annotations wakes no pod")
}
