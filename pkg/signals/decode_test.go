package signals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
)

var hostLabels = []string{"node", "Hostname", "hostname"}

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
		metric model.Metric
		node   string
	}{
		"a name precedes another node's hostname": {model.Metric{"node": "a"}, "a"},
		"the first label decides":                 {model.Metric{"node": "a", "Hostname": "b"}, "a"},
		"an empty label is as if absent":          {model.Metric{"node": "", "hostname": "b"}, "b"},
		"the first label decides even if unknown": {model.Metric{"node": "x", "Hostname": "b"}, ""},
		"a short name stands for the long one":    {model.Metric{"Hostname": "c"}, "c.one.example.com"},
		"a short name of two nodes names neither": {model.Metric{"Hostname": "e"}, ""},
		"a hostname of two nodes names neither":   {model.Metric{"Hostname": "shared"}, ""},
		"a series without a host is of no node":   {model.Metric{"gpu": "0"}, ""},
		"a node of another cluster is of no node": {model.Metric{"node": "elsewhere"}, ""},
		"a name in full precedes all":             {model.Metric{"Hostname": "e.two.example.com"}, "e.two.example.com"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if node, ok := from.node(c.metric); node != c.node || ok != (c.node != "") {
				t.Errorf("node %q, known %v; want node %q", node, ok, c.node)
			}
		})
	}
}

func TestUseOfDoubtfulSamples(t *testing.T) {
	t.Parallel()
	asked := time.Unix(5000, 0)
	from := newOrigin(hostLabels, []Node{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	vector := model.Vector{
		// Node a: one GPU of each kind, times 20 s and 50 s old; the same GPU under two host labels counts once.
		sampleOf(0.5, "node", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "engine"),
		sampleOf(0.7, "Hostname", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "engine"),
		sampleOf(90, "node", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "util"),
		sampleOf(10, "node", "a", "gpu", "1", "UUID", "GPU-1", "berth_reading", "util"),
		sampleOf(100, "node", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "used"),
		sampleOf(900, "node", "a", "gpu", "0", "UUID", "GPU-0", "berth_reading", "free"),
		sampleOf(980, "node", "a", "berth_reading", "time"),
		sampleOf(950, "Hostname", "a", "berth_reading", "time"),
		// Memory in use alone says nothing of GPU 1, and that of a GPU without utilization says nothing at all.
		sampleOf(100, "node", "a", "gpu", "1", "UUID", "GPU-1", "berth_reading", "used"),
		sampleOf(100, "node", "a", "gpu", "2", "UUID", "GPU-2", "berth_reading", "used"),
		sampleOf(900, "node", "a", "gpu", "2", "UUID", "GPU-2", "berth_reading", "free"),
		// Node b: values without a time. Node c: a time without values.
		sampleOf(0.5, "node", "b", "gpu", "0", "berth_reading", "engine"),
		sampleOf(980, "node", "c", "berth_reading", "time"),
		// Dropped.
		sampleOf(0.5, "node", "elsewhere", "gpu", "0", "berth_reading", "engine"),
		sampleOf(0.5, "gpu", "0", "berth_reading", "engine"),
		sampleOf(0.5, "node", "a", "berth_reading", "engine"),
		sampleOf(1.01, "node", "a", "gpu", "2", "berth_reading", "engine"),
		sampleOf(model.SampleValue(sentinels[2]), "node", "a", "gpu", "2", "berth_reading", "util"),
		sampleOf(model.SampleValue(sentinels[12]), "node", "a", "berth_reading", "time"),
		sampleOf(0.5, "node", "a", "gpu", "2", "berth_reading", "unheard of"),
	}
	got, dropped := decodeUse(vector, asked, from)
	want := map[string]Use{"a": {Time: asked.Add(-50 * time.Second), MeanMilli: 400, GPUs: []GPUUse{
		{GPUID: GPUID{0, "GPU-0"}, Milli: 700, UsedMiB: 100, FreeMiB: 900}, {GPUID: GPUID{1, "GPU-1"}, Milli: 100}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("use (-want +got):\n%s", diff)
	}
	if dropped != 7 {
		t.Errorf("dropped %d, want 7", dropped)
	}
}

func TestUseCountsUntilItIsOldAndWhereEnoughNodesHaveIt(t *testing.T) {
	t.Parallel()
	now := time.Unix(5000, 0)
	fresh, old := Use{Time: now}, Use{Time: now.Add(-3 * time.Minute)}
	s := GPUSnapshot{maxAge: 3 * time.Minute, covered: true, use: map[string]Use{"fresh": fresh, "old": old}}
	for node, want := range map[string]bool{"fresh": true, "old": false, "unmeasured": false} {
		if _, ok := s.Use(node, now); ok != want {
			t.Errorf("node %s: known %v, want %v", node, ok, want)
		}
	}
	covered, newest := s.coverage([]Node{{Name: "fresh"}, {Name: "old"}, {Name: "unmeasured"}}, now)
	if covered != 1 || !newest.Equal(now) {
		t.Errorf("covered %d, newest %s", covered, newest)
	}
	s.covered = false
	if _, ok := s.Use("fresh", now); ok {
		t.Error("use counts although too few nodes have a sample")
	}
}
