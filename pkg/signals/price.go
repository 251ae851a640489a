package signals

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
)

// priced is what a price is of: a node or, without its name, an offering of Karpenter, which is an instance type,
// bought in a way, in a zone.
type priced struct {
	node                             string
	instanceType, capacityType, zone string
}

// quote is a price an hour and the time at which it was last given.
type quote struct {
	perHour price.MicroDollars
	time    time.Time
}

// PriceSnapshot is what was known of prices after one round of queries. It never changes. The zero value knows nothing.
type PriceSnapshot struct {
	maxAge time.Duration
	quotes map[priced]quote
}

// Of returns the price an hour of the node itself (OpenCost), else that of its offering (Karpenter), which its labels
// and its capacity type tell, by Karpenter's name of it. It is 0 if neither is known or both were last given too long
// before now: metrics of 0 are no prices.
func (s *PriceSnapshot) Of(node *v1.Node, capacityType string, now time.Time) price.MicroDollars {
	for _, of := range [...]priced{{node: node.Name}, {
		instanceType: node.Labels[v1.LabelInstanceTypeStable], capacityType: capacityType,
		zone: node.Labels[v1.LabelTopologyZone],
	}} {
		if known, ok := s.quotes[of]; ok && now.Sub(known.time) < s.maxAge {
			return known.perHour
		}
	}
	return 0
}

// update adds the prices of an answer at the time now; prices that it lacks stay until they are too old.
func (s *PriceSnapshot) update(vector model.Vector, now time.Time) (dropped int) {
	next := make(map[priced]quote, len(vector))
	for of, known := range s.quotes {
		if now.Sub(known.time) < s.maxAge {
			next[of] = known
		}
	}
	for _, sample := range vector {
		of, known := pricedBy(sample.Metric)
		perHour, ok := priceOf(sample.Value)
		if !known || !ok {
			dropped++
			continue
		}
		// Two exporters may disagree while one of them is behind; the higher price is safer.
		if before := next[of]; before.time.Equal(now) {
			perHour = max(perHour, before.perHour)
		}
		next[of] = quote{perHour: perHour, time: now}
	}
	s.quotes = next
	return dropped
}

// pricedBy returns what a series gives the price of; ok is false if it does not say.
func pricedBy(metric model.Metric) (of priced, ok bool) {
	if metric[labelReading] == readingNode {
		of.node = firstLabel(metric, costNodeLabels)
		return of, of.node != ""
	}
	of = priced{
		instanceType: string(metric["instance_type"]),
		capacityType: string(metric["capacity_type"]),
		zone:         string(metric["zone"]),
	}
	return of, of.instanceType != "" && of.capacityType != "" && of.zone != ""
}

// costNodeLabels may name the node of a price by node, the first one present decides. Prometheus renames a label of the
// exporter to exported_… when the scraped target has one of the same name, which then names the exporter's own node.
var costNodeLabels = []string{"exported_node", "node", "exported_instance", "instance"}

// readingNode marks the price of a node.
const readingNode = "node"

// signalPrices is the name of the prices in logs and metrics.
const signalPrices = "prices"

// priceLookback is how old a price sample may be for the server to give it: five minutes, the server's own default.
const priceLookback = 5 * time.Minute

// StartPrices starts to read the prices that args, with defaults set and validated, ask for, until ctx ends; without
// args it returns nil. Readers are shared and errors arise as with StartGPU.
func StartPrices(ctx context.Context, factory kubeinformers.SharedInformerFactory,
	args *config.PriceSignals) (*Reader[PriceSnapshot], error) {
	if args == nil {
		return nil, nil
	}
	query := fill(queryPrices, costNodeLabels, &args.Prometheus, 0)
	read := func(ctx context.Context, r *round, next *PriceSnapshot) {
		r.ask(ctx, signalPrices, query, model.ValVector, priceLookback, func(answer model.Value, asked time.Time) int {
			return next.update(answer.(model.Vector), asked)
		})
		now, entries, newest := time.Now(), 0, time.Time{}
		for _, q := range next.quotes {
			if now.Sub(q.time) < next.maxAge {
				entries++
			}
			if q.time.After(newest) {
				newest = q.time
			}
		}
		r.knows(signalPrices, entries, newest)
	}
	// Prices are read for all nodes, known or not.
	known := func() bool { return true }
	return start(ctx, factory, args, &args.Prometheus, known, PriceSnapshot{maxAge: args.MaxAge.Duration}, read)
}
