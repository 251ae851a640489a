package signals

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	kubeinformers "k8s.io/client-go/informers"

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
	nodes func() []Node) (*Reader[FigureSnapshot], error) {
	if args == nil {
		return nil, nil
	}
	read := func(ctx context.Context, r *round, next *FigureSnapshot) {
		hosts := newOrigin(args.HostLabels, nodes())
		ask := func(signal, query string, worse func(a, b float64) float64, into *figures) {
			if query == "" {
				return
			}
			r.ask(ctx, signal, query, model.ValVector, next.maxAge, func(answer model.Value, asked time.Time) (dropped int) {
				into.time = asked
				into.byNode, dropped = decodeFigures(answer.(model.Vector), worse, hosts)
				return dropped
			})
			r.knows(signal, len(into.fresh(time.Now(), next.maxAge)), into.time)
		}
		ask(signalLatency, args.LatencyMsQuery, func(a, b float64) float64 { return max(a, b) }, &next.latency)
		ask(signalThroughput, args.ThroughputQuery, func(a, b float64) float64 { return min(a, b) }, &next.throughput)
	}
	known := factory.Core().V1().Nodes().Informer().HasSynced
	return start(ctx, factory, args, &args.Prometheus, known, FigureSnapshot{maxAge: args.MaxAge.Duration}, read)
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
