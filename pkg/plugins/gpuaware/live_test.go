package gpuaware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

// prometheusStub answers the query for use with these samples, and that for faults with these series.
func prometheusStub(t *testing.T, use, faults []string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("parsing query: %v", err)
		}
		kind, result := "vector", use
		if strings.Contains(r.Form.Get("query"), "DCGM_FI_DEV_ROW_REMAP_FAILURE") {
			kind, result = "matrix", slices.Concat(faults, []string{`{"metric":{},"values":[[940,"0"],[1000,"0"]]}`})
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[%s]}}`, kind, strings.Join(result, ","))
	}))
	t.Cleanup(server.Close)
	return server
}

func sample(reading, node string, gpu int, value any) string {
	return fmt.Sprintf(`{"metric":{"berth_reading":%q,"node":%q,"gpu":"%d"},"value":[%d,"%v"]}`, reading, node, gpu, time.Now().Unix(), value)
}

// fault is the series of a GPU with a failed row remap.
func fault(node string, gpu int, uuid string) string {
	return series("row_remap", node, gpu, uuid, 1, 1)
}

// series are two samples of a GPU, a minute apart.
func series(reading, node string, gpu int, uuid string, before, now int) string {
	return fmt.Sprintf(`{"metric":{"berth_reading":%q,"node":%q,"gpu":"%d","UUID":%q},"values":[[940,"%d"],[1000,"%d"]]}`,
		reading, node, gpu, uuid, before, now)
}

func measuredBy(server *httptest.Server) func(*config.GPUAwareArgs) {
	return func(a *config.GPUAwareArgs) {
		a.Signals = &config.GPUSignals{Prometheus: config.Prometheus{URL: server.URL,
			Interval: &metav1.Duration{Duration: 5 * time.Second}}}
		config.SetDefaultsGPUSignals(a.Signals)
	}
}

// awaitSignals waits until the reader knows of the nodes.
func awaitSignals(t *testing.T, h *harness, ready func(*signals.GPUSnapshot) bool) {
	t.Helper()
	await.Until(t, "the signals", func() bool { return ready(h.plugin.signals.Snapshot()) })
}

func TestMeasuredUtilisationBreaksTiesAmongSharedGPUs(t *testing.T) {
	t.Parallel()
	var samples []string
	for node, busy := range map[string]int{"a": 90, "b": 10, "c": 60} {
		samples = append(samples, sample("util", node, 0, busy), sample("time", node, 0, time.Now().Unix()))
	}
	server := prometheusStub(t, samples, nil)
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), sharedNode("a", 1), sharedNode("b", 1), sharedNode("c", 1))
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { _, ok := s.Use("b", time.Now()); return ok })
	bound, err := h.place(t, h.add(t, podObject("p", nil, strs{"gpu-fraction": "0.2"})))
	if err != nil || bound.Spec.NodeName != "b" {
		t.Errorf("share placed on %v (%v), want the idlest node b", bound, err)
	}
	state, scores, err := h.evaluate(t, h, podObject("whole", strs{"nvidia.com/gpu": "1"}, nil))
	if err != nil || len(scores) != 2 || scores[0].TotalScore != scores[1].TotalScore {
		t.Errorf("whole GPU: scores %v in %v (%v), want two equal ones: it shares with nobody", scores, state, err)
	}
}

func TestSharesPromisedSinceTheSampleCount(t *testing.T) {
	t.Parallel()
	since := time.Now()
	old := podObject("old", nil, strs{"gpu-fraction": "0.2"})
	old.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(since.Add(-time.Minute))}}
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	for _, p := range []*v1.Pod{old, podObject("new", nil, strs{"gpu-fraction": "0.3"})} {
		if _, _, err := h.reserve(t, h.add(t, p)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, h.Cache.UpdateSnapshot(h.logger, h.Snapshot))
	info, err := h.Snapshot.NodeInfos().Get("n")
	require.NoError(t, err)
	node, _ := h.plugin.settings.keys.ReadGPUNode(info.Node())
	if got := assignedSince(info, since, 0, node, h.plugin.shared.ledger.of); got != 300 {
		t.Errorf("promised since the sample = %d milli-GPU, want 300: the older pod is in the sample", got)
	}
}

func TestFaultyGPUsAreNotGivenOut(t *testing.T) {
	t.Parallel()
	server := prometheusStub(t, nil, []string{fault("a", 0, "")})
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), sharedNode("a", 2))
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { return len(s.Faults("a", time.Now())) > 0 })
	bound, err := h.place(t, h.add(t, podObject("p", nil, strs{"gpu-fraction": "0.2"})))
	require.NoError(t, err)
	if got := gpuview.AssignedDevices(bound); len(got) != 1 || got[0] != 1 {
		t.Errorf("devices = %v, want the healthy GPU 1", got)
	}
	_, _, err = h.evaluate(t, h, podObject("q", strs{"nvidia.com/gpu": "2"}, nil))
	if err == nil || !strings.Contains(err.Error(), "node(s) with too few healthy GPUs (need 2, have 1)") {
		t.Errorf("error = %v, want the missing healthy GPU named", err)
	}
}
