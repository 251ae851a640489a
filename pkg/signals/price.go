package signals

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
)

// Offering is what Karpenter prices: an instance type, bought in a way, in a zone.
type Offering struct {
	InstanceType, CapacityType, Zone string
}

// priced is what a price is of: a node, or an offering.
type priced struct {
	node     string
	offering Offering
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

// Node returns the price an hour of a node (OpenCost); ok is false if it is unknown or was last given too long before
// now.
func (s *PriceSnapshot) Node(name string, now time.Time) (perHour price.MicroDollars, ok bool) {
	return s.fresh(priced{node: name}, now)
}

// Offering returns the price an hour of nodes of an offering (Karpenter); ok is as with Node.
func (s *PriceSnapshot) Offering(of Offering, now time.Time) (perHour price.MicroDollars, ok bool) {
	return s.fresh(priced{offering: of}, now)
}

func (s *PriceSnapshot) fresh(of priced, now time.Time) (price.MicroDollars, bool) {
	known, ok := s.quotes[of]
	if !ok || now.Sub(known.time) >= s.maxAge {
		return 0, false
	}
	return known.perHour, true
}

// update takes over what an answer given at the time now brought; prices that it lacks stay until they are too old.
func (s *PriceSnapshot) update(vector model.Vector, now time.Time) (dropped int) {
	next := make(map[priced]quote, len(vector))
	for of, known := range s.quotes {
		if now.Sub(known.time) < s.maxAge {
			next[of] = known
		}
	}
	given := make(map[priced]bool, len(vector))
	for _, sample := range vector {
		of, known := pricedBy(sample.Metric)
		perHour, ok := priceOf(sample.Value)
		if !known || !ok {
			dropped++
			continue
		}
		// Two exporters may disagree while one of them is behind; the dearer price is the safer one.
		if given[of] {
			perHour = max(perHour, next[of].perHour)
		}
		given[of] = true
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
	of.offering = Offering{
		InstanceType: string(metric[labelInstanceType]),
		CapacityType: string(metric[labelCapacityType]),
		Zone:         string(metric[labelZone]),
	}
	return of, of.offering.InstanceType != "" && of.offering.CapacityType != "" && of.offering.Zone != ""
}

// signalPrices is the name of the prices in logs and metrics.
const signalPrices = "prices"

// priceLookback is how old a price sample may be for the server to give it: five minutes, the server's own default.
const priceLookback = 5 * time.Minute

// PriceReader reads prices.
type PriceReader = Reader[PriceSnapshot]

// StartPrices starts to read the prices that args, with defaults set and validated, ask for, until ctx ends; without
// args it returns nil. Readers are shared and errors arise as with StartGPU.
func StartPrices(ctx context.Context, factory kubeinformers.SharedInformerFactory,
	args *config.PriceSignals) (*PriceReader, error) {
	if args == nil {
		return nil, nil
	}
	query := newQueries(nil, args.Prometheus.MatchLabels).prices()
	read := func(ctx context.Context, from *source, next *PriceSnapshot) trouble {
		return readPrices(ctx, from, query, next)
	}
	// What has a price need not be known.
	known := func() bool { return true }
	return start(ctx, factory, args, &args.Prometheus, known, PriceSnapshot{maxAge: args.MaxAge.Duration}, read)
}

func readPrices(ctx context.Context, from *source, query string, next *PriceSnapshot) (t trouble) {
	asked, dropped := time.Now(), 0
	vector, err := from.client.vector(ctx, query, priceLookback)
	if err != nil {
		t.fails(signalPrices, err)
	} else {
		dropped = next.update(vector, asked)
	}
	entries, newest := 0, time.Time{}
	for _, q := range next.quotes {
		if asked.Sub(q.time) < next.maxAge {
			entries++
		}
		if q.time.After(newest) {
			newest = q.time
		}
	}
	from.account(signalPrices, dropped, err, entries, newest)
	return t
}
