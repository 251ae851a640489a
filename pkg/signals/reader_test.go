package signals

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/require"
)

// logOf returns a logger and what it has logged.
func logOf(t *testing.T) (klog.Logger, func() []string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	return logger, func() []string {
		var lines []string
		for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
			lines = append(lines, entry.Message)
		}
		return lines
	}
}

func gpuArgs(url string) *config.GPUSignals {
	args := &config.GPUSignals{Prometheus: config.Prometheus{URL: url}}
	config.SetDefaultsGPUSignals(args)
	return args
}

func gpuReader(t *testing.T, args *config.GPUSignals, nodes ...Node) *Reader[GPUSnapshot] {
	t.Helper()
	logger, _ := ktesting.NewTestContext(t)
	return gpuReaderOf(t, logger, args, func() []Node { return nodes })
}

func gpuReaderOf(t *testing.T, logger klog.Logger, args *config.GPUSignals, nodes func() []Node) *Reader[GPUSnapshot] {
	t.Helper()
	r, err := newReader(logger, &args.Prometheus, firstGPUSnapshot(args), readGPUs(args, nodes))
	if err != nil {
		t.Fatalf("making the reader: %v", err)
	}
	t.Cleanup(r.client.connections.CloseIdleConnections)
	return r
}

// eventually waits until check returns nothing, and fails with what it last said after a minute.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			last = check()
			return last == "", nil
		})
	if err != nil {
		t.Fatalf("waiting for the signal: %v; last: %s", err, last)
	}
}

func TestTroubleIsToldOnceAndSoIsItsEnd(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler) // as a server that ends
		}
		_ = r.ParseForm()
		kind := "vector"
		if strings.HasSuffix(r.Form.Get("query"), "]") {
			kind = "matrix"
		}
		answer(200, `{"status":"success","data":{"resultType":"`+kind+`","result":[]}}`)(w, r)
	}))
	t.Cleanup(server.Close)
	logger, lines := logOf(t)
	args := gpuArgs(server.URL)
	nodes := []Node{}
	r := gpuReaderOf(t, logger, args, func() []Node { return nodes })
	expect := func(what, want string) {
		t.Helper()
		before := len(lines())
		for range 3 {
			r.round(t.Context())
		}
		if got := lines()[before:]; len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: log %q, want one line with %q", what, got, want)
		}
	}
	r.round(t.Context())
	if got := lines(); len(got) != 0 {
		t.Errorf("a server that answers from the first query on: log %q, want none", got)
	}
	nodes = []Node{{Name: "a"}}
	expect("a node appears that has no sample", "off for all nodes")
	down.Store(true)
	expect("the server ends", "fails")
	down.Store(false)
	expect("the server is back", "off for all nodes")
	nodes = nil
	expect("the node is gone", "All live signals are read again")
	failures, err := testutil.GetCounterMetricValue(metricFailures.WithLabelValues(r.client.server, signalUse))
	if err != nil || failures < 3 {
		t.Errorf("counted failures: %v (%v), want at least 3", failures, err)
	}
}

func TestAFailingServerChangesNothingThatWasKnown(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		switch query := r.Form.Get("query"); {
		case broken.Load():
			answer(http.StatusBadGateway, "no upstream")(w, r)
		case strings.Contains(query, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"):
			answer(200, `{"status":"success","data":{"resultType":"vector","result":[
				{"metric":{"node":"a","gpu":"0","UUID":"GPU-0","berth_reading":"engine"},"value":[1000,"0.5"]},
				{"metric":{"node":"a","berth_reading":"time"},"value":[1000,"990"]}]}}`)(w, r)
		case strings.HasSuffix(query, "]"):
			answer(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)(w, r)
		default:
			answer(200, emptyVector)(w, r)
		}
	}))
	t.Cleanup(server.Close)
	r := gpuReader(t, gpuArgs(server.URL), Node{Name: "a"})
	r.round(t.Context())
	before, _ := r.Snapshot().Use("a", time.Now())
	if before.MeanMilli != 500 {
		t.Fatalf("use %v", before)
	}
	if age := time.Since(before.Time); age < 9*time.Second || age > 30*time.Second {
		t.Errorf("age of the sample: %s, want 10s", age)
	}
	wider := gpuReader(t, gpuArgs(server.URL), Node{Name: "a"}, Node{Name: "unmeasured"})
	wider.round(t.Context())
	if use, ok := wider.Snapshot().Use("a", time.Now()); ok {
		t.Errorf("use while half of the nodes are measured: %v, want none", use)
	}
	old := r.Snapshot()
	broken.Store(true)
	r.round(t.Context())
	if after, _ := r.Snapshot().Use("a", time.Now()); after.MeanMilli != 500 || !after.Time.Equal(before.Time) {
		t.Errorf("after a failure: %v, want what was known", after)
	}
	if r.Snapshot() == old {
		t.Error("the round after a failure published no snapshot, so that coverage would never be judged again")
	}
}

// newFactory stands for a scheduler: its informer factory is what readers belong to.
func newFactory() kubeinformers.SharedInformerFactory {
	return kubeinformers.NewSharedInformerFactory(fake.NewClientset(), 0)
}

// known says that all nodes have been heard of.
func known() bool { return true }

func TestTheFirstRoundIsThatOfTheNodesOfTheStart(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if strings.Contains(r.Form.Get("query"), "DCGM_FI_DEV_ROW_REMAP_FAILURE") {
			answer(200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1000,"0"]]},
				{"metric":{"node":"a","gpu":"0","berth_reading":"row_remap"},"values":[[1000,"1"]]}]}}`)(w, r)
			return
		}
		answer(200, emptyVector)(w, r)
	}))
	t.Cleanup(server.Close)
	args := gpuArgs(server.URL)
	args.Prometheus.Interval = &metav1.Duration{Duration: time.Hour}
	var heard atomic.Bool
	nodes := func() []Node {
		if heard.Load() {
			return []Node{{Name: "a"}}
		}
		t.Error("the reader asked for nodes before they were known")
		return nil
	}
	r, err := StartGPU(t.Context(), newFactory(), args, nodes, heard.Load)
	require.NoError(t, err)
	heard.Store(true)
	eventually(t, func() string {
		if len(r.Snapshot().Faults("a", time.Now())) == 0 {
			return "the fault is not known"
		}
		return ""
	})
}

func TestReadersAreSharedByTheProfilesOfASchedulerAndStopWithIt(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	var waiting atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waiting.Add(1)
		defer waiting.Add(-1)
		select {
		case asked <- struct{}{}:
		default:
		}
		// A server that never answers: neither start nor stop may wait for it. It sees the client go only once it has
		// read the request.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	scheduler, other := newFactory(), newFactory()
	args := func(tune ...func(*config.GPUSignals)) *config.GPUSignals {
		// Longer than this test waits: only the end of the reader ends its requests.
		a := gpuArgs(server.URL)
		a.Prometheus.Interval = &metav1.Duration{Duration: time.Hour}
		a.Prometheus.Timeout = &metav1.Duration{Duration: time.Hour}
		for _, f := range tune {
			f(a)
		}
		return a
	}
	start := func(factory kubeinformers.SharedInformerFactory, args *config.GPUSignals) *Reader[GPUSnapshot] {
		t.Helper()
		r, err := StartGPU(ctx, factory, args, func() []Node { return nil }, known)
		require.NoError(t, err)
		return r
	}
	reader := start(scheduler, args())
	if start(scheduler, args()) != reader {
		t.Error("two profiles with the same args have two readers")
	}
	if start(scheduler, args(func(a *config.GPUSignals) { a.FatalXIDs = []int32{79} })) == reader {
		t.Error("profiles with different args share a reader")
	}
	if start(other, args()) == reader {
		t.Error("two schedulers share a reader")
	}
	<-asked
	if reader.Snapshot() == nil {
		t.Error("no snapshot before the first answer")
	}
	stop()
	eventually(t, func() string {
		if n := waiting.Load(); n != 0 {
			return fmt.Sprintf("%d requests still wait for an answer", n)
		}
		return ""
	})
}

func TestSignalsThatAreNotConfiguredKnowNothing(t *testing.T) {
	t.Parallel()
	gpu, err := StartGPU(t.Context(), newFactory(), nil, nil, nil)
	if gpu != nil || err != nil {
		t.Fatalf("reader %v, error %v", gpu, err)
	}
	prices, err := StartPrices(t.Context(), newFactory(), nil)
	if prices != nil || err != nil {
		t.Fatalf("reader %v, error %v", prices, err)
	}
	now := time.Now()
	if use, ok := gpu.Snapshot().Use("a", now); ok {
		t.Errorf("use: %v", use)
	}
	if faults := gpu.Snapshot().Faults("a", now); faults != nil {
		t.Errorf("faults: %v", faults)
	}
	if amount := prices.Snapshot().Of(&v1.Node{}, "spot", now); amount != 0 {
		t.Errorf("price: %s", amount)
	}
}

func TestMetricsAreOnTheEndpointOfTheScheduler(t *testing.T) {
	t.Parallel()
	r := gpuReader(t, gpuArgs("http://127.0.0.1:1"), Node{Name: "a"})
	r.round(t.Context())
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	found := map[string]bool{}
	for _, family := range families {
		found[family.GetName()] = true
	}
	for _, name := range []string{"entries", "query_failures_total", "dropped_samples_total"} {
		if !found["berth_signal_"+name] {
			t.Errorf("no metric berth_signal_%s", name)
		}
	}
}

func TestSnapshotsMayBeReadWhileRoundsRun(t *testing.T) {
	t.Parallel()
	r := gpuReader(t, gpuArgs("http://127.0.0.1:1"), Node{Name: "a"})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			r.round(t.Context())
		}
	})
	for range 1000 {
		if _, ok := r.Snapshot().Use("a", time.Now()); ok {
			t.Error("use without a sample")
		}
	}
	wg.Wait()
}
