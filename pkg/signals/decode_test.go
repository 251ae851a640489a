package signals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
)

var hostLabels = []model.LabelName{"node", "Hostname", "hostname"}

func sampleOf(value model.SampleValue, labels ...model.LabelValue) *model.Sample {
	metric := model.Metric{}
	for i := 0; i < len(labels); i += 2 {
		metric[model.LabelName(labels[i])] = labels[i+1]
	}
	return &model.Sample{Metric: metric, Value: value, Timestamp: 1_000_000}
}

func TestHostsAreNodes(t *testing.T) {
	t.Parallel()
	nodes := []Node{
		{Name: "a", Hostname: "b"}, {Name: "b", Hostname: "a"},
		{Name: "c.one.example.com", Hostname: "shared"}, {Name: "d.one.example.com", Hostname: "shared"},
		{Name: "e.one.example.com"}, {Name: "e.two.example.com"},
	}
	from := newOrigin(hostLabels, nodes)
	cases := map[string]struct {
		metric       model.Metric
		node, reason string
	}{
		"a name precedes another node's hostname": {model.Metric{"node": "a"}, "a", ""},
		"the first label decides":                 {model.Metric{"node": "a", "Hostname": "b"}, "a", ""},
		"an empty label is as if absent":          {model.Metric{"node": "", "hostname": "b"}, "b", ""},
		"the first label decides even if unknown": {model.Metric{"node": "x", "Hostname": "b"}, "", dropUnknownHost},
		"a short name stands for the long one":    {model.Metric{"Hostname": "c"}, "c.one.example.com", ""},
		"a short name of two nodes names neither": {model.Metric{"Hostname": "e"}, "", dropUnknownHost},
		"a hostname of two nodes names neither":   {model.Metric{"Hostname": "shared"}, "", dropUnknownHost},
		"a series without a host is of nobody":    {model.Metric{"gpu": "0"}, "", dropNoHost},
		"a node of another cluster is of nobody":  {model.Metric{"node": "elsewhere"}, "", dropUnknownHost},
		"a name in full precedes all":             {model.Metric{"Hostname": "e.two.example.com"}, "e.two.example.com", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, reason := from.node(c.metric)
			if node != c.node || reason != c.reason {
				t.Errorf("node %q, dropped for %q; want node %q, dropped for %q", node, reason, c.node, c.reason)
			}
		})
	}
}

func TestUtilisationOfDoubtfulSamples(t *testing.T) {
	t.Parallel()
	asked := time.Unix(5000, 0)
	from := newOrigin(hostLabels, []Node{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	vector := model.Vector{
		// Node a: one GPU of each kind, times 20 s and 50 s old; the same GPU under two host labels counts once.
		sampleOf(0.5, "node", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "engine"),
		sampleOf(0.7, "Hostname", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "engine"),
		sampleOf(90, "node", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "util"),
		sampleOf(10, "node", "a", "gpu", "1", "UUID", "GPU-1", "berth_reading", "util"),
		sampleOf(980, "node", "a", "berth_reading", "engine_time"),
		sampleOf(950, "node", "a", "berth_reading", "util_time"),
		sampleOf(960, "Hostname", "a", "berth_reading", "util_time"),
		// Node b: values without a time. Node c: a time without values.
		sampleOf(0.5, "node", "b", "gpu", "0", "berth_reading", "engine"),
		sampleOf(980, "node", "c", "berth_reading", "engine_time"),
		// Dropped.
		sampleOf(0.5, "node", "elsewhere", "gpu", "0", "berth_reading", "engine"),
		sampleOf(0.5, "gpu", "0", "berth_reading", "engine"),
		sampleOf(0.5, "node", "a", "berth_reading", "engine"),
		sampleOf(1.01, "node", "a", "gpu", "2", "berth_reading", "engine"),
		sampleOf(model.SampleValue(sentinels[2]), "node", "a", "gpu", "2", "berth_reading", "util"),
		sampleOf(model.SampleValue(sentinels[12]), "node", "a", "berth_reading", "engine_time"),
		sampleOf(0.5, "node", "a", "gpu", "2", "berth_reading", "unheard of"),
	}
	got, dropped := decodeUtilisation(vector, asked, from)
	want := map[string]Utilisation{"a": {Time: asked.Add(-50 * time.Second), MeanMilli: 400, GPUs: []GPUUtilisation{
		{GPUID: GPUID{0, "GPU-0"}, Milli: 700}, {GPUID: GPUID{1, "GPU-1"}, Milli: 100}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("utilisation (-want +got):\n%s", diff)
	}
	wantDropped := drops{dropUnknownHost: 1, dropNoHost: 1, dropNoGPU: 1, dropBadValue: 4}
	if diff := cmp.Diff(wantDropped, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestFaultsOfDoubtfulSamples(t *testing.T) {
	t.Parallel()
	asked := time.Unix(5000, 0)
	from := newOrigin(hostLabels, []Node{{Name: "a"}})
	got, dropped := decodeFaults(model.Vector{
		sampleOf(1, "node", "a", "gpu", "2", "berth_reading", "row_remap"),
		sampleOf(1, "Hostname", "a", "gpu", "2", "berth_reading", "row_remap"),
		sampleOf(3, "node", "a", "gpu", "1", "xid", "79", "berth_reading", "xid_count"),
		sampleOf(3, "node", "a", "gpu", "1", "xid", "31", "berth_reading", "xid_count"),
		sampleOf(3, "node", "a", "gpu", "1", "xid", "x", "berth_reading", "xid_count"),
		sampleOf(0, "node", "a", "gpu", "1", "berth_reading", "row_remap"),
		sampleOf(1, "node", "a", "gpu", "1"),
		sampleOf(1, "node", "a", "berth_reading", "row_remap"),
	}, asked, map[int]bool{79: true}, from)
	want := faultsByNode{"a": {{GPUID: GPUID{Index: 2}, Time: asked}, {GPUID: GPUID{Index: 1}, XID: 79, Time: asked}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(drops{dropBadValue: 4, dropNoGPU: 1}, dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}

	older := faultsByNode{"a": {{GPUID: GPUID{Index: 1}, XID: 79, Time: asked.Add(-time.Hour)}}}
	merged := mergeFaults(older, got)
	wantMerged := faultsByNode{"a": {{GPUID: GPUID{Index: 1}, XID: 79, Time: asked},
		{GPUID: GPUID{Index: 2}, Time: asked}}}
	if diff := cmp.Diff(wantMerged, merged); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if !older["a"][0].Time.Equal(asked.Add(-time.Hour)) || got["a"][0].Index != 2 {
		t.Error("merging changed what was merged")
	}
	snapshot := &GPUSnapshot{faultWindow: time.Hour, faults: faultsByNode{"a": {
		{GPUID: GPUID{Index: 1}, XID: 79, Time: asked}, {GPUID: GPUID{Index: 2}, Time: asked.Add(time.Minute)}}}}
	for after, count := range map[time.Duration]int{time.Hour - 1: 2, time.Hour: 1, 2 * time.Hour: 0} {
		if active := snapshot.Faults("a", asked.Add(after)); len(active) != count {
			t.Errorf("faults that count after %s: %v, want %d", after, active, count)
		}
	}
}

func TestWeightFallsWithAge(t *testing.T) {
	t.Parallel()
	ages := sampleAges{full: 60 * time.Second, zero: 180 * time.Second}
	for age, want := range map[time.Duration]float64{
		-time.Second: 1, 0: 1, 60 * time.Second: 1, 90 * time.Second: 0.75, 120 * time.Second: 0.5, 180 * time.Second: 0,
		time.Hour: 0,
	} {
		if got := ages.weight(age); got != want {
			t.Errorf("weight at the age of %s: %v, want %v", age, got, want)
		}
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		covered, nodes int
		want           bool
	}{{0, 0, false}, {0, 1, false}, {1, 1, true}, {4, 5, true}, {3, 5, false}, {799, 1000, false}, {800, 1000, true}} {
		if got := (coverage{covered: c.covered, nodes: c.nodes}).enough(80); got != c.want {
			t.Errorf("%d of %d nodes: enough %v, want %v", c.covered, c.nodes, got, c.want)
		}
	}
}
