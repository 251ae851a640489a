package gpuaware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/await"
)

// activator takes the place of the scheduling queue.
type activator struct{ pods chan map[string]*v1.Pod }

func (a activator) Activate(_ klog.Logger, pods map[string]*v1.Pod) { a.pods <- pods }

func TestPendingGPUPodsAreTriedAgainWhenAFaultIsOver(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("parsing query: %v", err)
		}
		samples, kind := "", "vector"
		if strings.Contains(r.Form.Get("query"), "DCGM_FI_DEV_ROW_REMAP_FAILURE") {
			kind, samples = "matrix", `{"metric":{},"values":[[940,"0"],[1000,"0"]]}`
			if !over.Load() {
				samples += "," + fault("a", 0, "")
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}}`, kind, samples)
	}))
	t.Cleanup(server.Close)
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), gpuNodeObject("a", 2, "Tesla-T4"))
	queue := activator{make(chan map[string]*v1.Pod, 10)}
	h.SetPodActivator(queue)
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { return len(s.Faults("a", time.Now())) > 0 })
	pods := map[string]*v1.Pod{
		"waits": podObject("waits", strs{"nvidia.com/gpu": "2"}, nil), "without-gpus": podObject("without-gpus", nil, nil),
		"runs":  podObject("runs", strs{"nvidia.com/gpu": "1"}, nil),
		"other": podObject("other", strs{"nvidia.com/gpu": "1"}, nil),
	}
	for _, pod := range pods {
		pod.Spec.SchedulerName = h.plugin.handle.ProfileName()
	}
	pods["runs"].Spec.NodeName, pods["other"].Spec.SchedulerName = "a", "another"
	for _, pod := range pods {
		h.add(t, pod)
	}
	over.Store(true)
	for range 2 {
		var got []string
		for _, pod := range await.Next(t, queue.pods, "the pod to be tried again") {
			got = append(got, pod.Name)
		}
		if diff := cmp.Diff([]string{"waits"}, got); diff != "" {
			t.Errorf("tried again (-want +got):\n%s", diff)
		}
	}
}
