package signals

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/model"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/sla"
)

// Names of the figures in logs and metrics.
const (
	signalLatency    = "slo_latency"
	signalThroughput = "slo_throughput"
)

// largestFigure is beyond any latency in milliseconds and any throughput, and far below what stands for "no reading".
const largestFigure = 1e15

// FigureReader reads what nodes achieve in the background. A nil reader, which is a source that is not configured,
// knows nothing.
type FigureReader struct {
	source
	hostLabels                    []model.LabelName
	nodes                         func() []Node
	latencyQuery, throughputQuery string

	snapshot atomic.Pointer[FigureSnapshot]
}

// FigureSnapshot is what was known of nodes after one round of queries. It never changes. The zero value knows nothing.
type FigureSnapshot struct {
	maxAge              time.Duration
	latency, throughput figures
}

// figures are by node what one answer said. An answer is all that is known: a node that it lacks has no sample that is
// young enough.
type figures struct {
	byNode map[string]float64
	time   time.Time
}

// Any reports whether any figure counts at a time.
func (s *FigureSnapshot) Any(now time.Time) bool {
	return len(s.latency.fresh(now, s.maxAge))+len(s.throughput.fresh(now, s.maxAge)) > 0
}

// Of returns the figures of a node that count at a time.
func (s *FigureSnapshot) Of(node string, now time.Time) sla.Figures {
	return sla.Figures{LatencyMs: s.latency.fresh(now, s.maxAge)[node],
		Throughput: s.throughput.fresh(now, s.maxAge)[node]}
}

func (f *figures) fresh(now time.Time, maxAge time.Duration) map[string]float64 {
	if now.Sub(f.time) >= maxAge {
		return nil
	}
	return f.byNode
}

// StartFigures starts to read the figures that args, with defaults set and validated, ask for, until ctx ends; without
// args it returns nil. nodes returns the nodes of the moment; it is called from the background. Readers are shared and
// errors arise as with StartGPU.
func StartFigures(ctx context.Context, factory kubeinformers.SharedInformerFactory, args *config.SLOSignals,
	nodes func() []Node) (*FigureReader, error) {
	if args == nil {
		return nil, nil
	}
	return share(factory, args, func() (*FigureReader, error) {
		r, err := newFigureReader(klog.FromContext(ctx), args, nodes)
		if err == nil {
			r.begin(ctx, factory.Core().V1().Nodes().Informer().HasSynced, r.round)
		}
		return r, err
	})
}

func newFigureReader(logger klog.Logger, args *config.SLOSignals, nodes func() []Node) (*FigureReader, error) {
	s, err := newSource(logger, &args.Prometheus)
	if err != nil {
		return nil, err
	}
	r := &FigureReader{
		source:          s,
		hostLabels:      newQueries(args.HostLabels, nil).hostLabels,
		nodes:           nodes,
		latencyQuery:    args.LatencyMsQuery,
		throughputQuery: args.ThroughputQuery,
	}
	r.snapshot.Store(&FigureSnapshot{maxAge: args.MaxAge.Duration})
	return r, nil
}

// Snapshot returns what is known now, never nil. It is one atomic load.
func (r *FigureReader) Snapshot() *FigureSnapshot {
	if r == nil {
		return &FigureSnapshot{}
	}
	return r.snapshot.Load()
}

// round asks for all figures and publishes what came. A figure whose query failed keeps what it had.
func (r *FigureReader) round(ctx context.Context) {
	from, next := newOrigin(r.hostLabels, r.nodes()), *r.Snapshot()
	var t trouble
	ask := func(signal, query string, worse func(a, b float64) float64, into *figures) {
		if query == "" {
			return
		}
		asked, dropped := time.Now(), 0
		vector, err := r.client.vector(ctx, query, next.maxAge)
		if err != nil {
			t.fails(signal, err)
		} else {
			into.byNode, dropped = decodeFigures(vector, worse, from)
			into.time = asked
		}
		r.account(signal, dropped, err, len(into.fresh(asked, next.maxAge)), into.time)
	}
	ask(signalLatency, r.latencyQuery, func(a, b float64) float64 { return max(a, b) }, &next.latency)
	ask(signalThroughput, r.throughputQuery, func(a, b float64) float64 { return min(a, b) }, &next.throughput)
	if ctx.Err() != nil {
		// The end of the scheduler is no failure of the server.
		return
	}
	r.snapshot.Store(&next)
	r.report(t)
}

// decodeFigures takes the worst of several series of one node. Zero is no figure but the lack of one: it is what
// exporters write for a node on which nothing runs.
func decodeFigures(vector model.Vector, worse func(a, b float64) float64, from origin) (map[string]float64, int) {
	byNode, dropped := make(map[string]float64, len(vector)), 0
	for _, sample := range vector {
		node, ok := from.node(sample.Metric)
		if !ok || !inBounds(sample.Value, largestFigure) || sample.Value == 0 {
			dropped++
			continue
		}
		value := float64(sample.Value)
		if known, ok := byNode[node]; ok {
			value = worse(known, value)
		}
		byNode[node] = value
	}
	return byNode, dropped
}
