package signals

import (
	"maps"
	"time"

	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/price"
)

// Offering is what Karpenter prices: an instance type, bought in a way, in a zone.
type Offering struct {
	InstanceType, CapacityType, Zone string
}

// PriceSnapshot is what was known of prices after one round of queries. It never changes. The zero value knows nothing.
type PriceSnapshot struct {
	maxAge    time.Duration
	nodes     quotes[string]
	offerings quotes[Offering]
}

// quote is a price an hour and the time at which it was last given.
type quote struct {
	perHour price.MicroDollars
	time    time.Time
}

type quotes[K comparable] map[K]quote

// Node returns the price an hour of a node (OpenCost); ok is false if it is unknown or was last given too long before
// now.
func (s *PriceSnapshot) Node(name string, now time.Time) (perHour price.MicroDollars, ok bool) {
	return s.nodes.fresh(name, now, s.maxAge)
}

// Offering returns the price an hour of nodes of an offering (Karpenter); ok is as with Node.
func (s *PriceSnapshot) Offering(of Offering, now time.Time) (perHour price.MicroDollars, ok bool) {
	return s.offerings.fresh(of, now, s.maxAge)
}

func (q quotes[K]) fresh(key K, now time.Time, maxAge time.Duration) (price.MicroDollars, bool) {
	known, ok := q[key]
	if !ok || now.Sub(known.time) >= maxAge {
		return 0, false
	}
	return known.perHour, true
}

// update returns q with what an answer given at the time now brought; prices that it lacks stay until they are too old.
func (q quotes[K]) update(vector model.Vector, now time.Time, maxAge time.Duration,
	keyOf func(model.Metric) (K, bool)) (quotes[K], drops) {
	next, dropped := maps.Clone(q), drops{}
	if next == nil {
		next = make(quotes[K], len(vector))
	}
	maps.DeleteFunc(next, func(_ K, known quote) bool { return now.Sub(known.time) >= maxAge })
	given := make(map[K]bool, len(vector))
	for _, sample := range vector {
		key, ok := keyOf(sample.Metric)
		if !ok {
			dropped[dropNoHost]++
			continue
		}
		perHour, ok := priceOf(sample.Value)
		if !ok {
			dropped[dropBadValue]++
			continue
		}
		// Two exporters may disagree while one of them is behind; the dearer price is the safer one.
		if given[key] {
			perHour = max(perHour, next[key].perHour)
		}
		given[key] = true
		next[key] = quote{perHour: perHour, time: now}
	}
	return next, dropped
}

func costNode(metric model.Metric) (string, bool) { return firstLabel(metric, costNodeLabels) }

func offeringOf(metric model.Metric) (Offering, bool) {
	o := Offering{
		InstanceType: string(metric[labelInstanceType]),
		CapacityType: string(metric[labelCapacityType]),
		Zone:         string(metric[labelZone]),
	}
	return o, o.InstanceType != "" && o.CapacityType != "" && o.Zone != ""
}
