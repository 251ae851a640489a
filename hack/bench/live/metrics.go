package live

import (
	"bytes"
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"berth.dev/berth/hack/bench/rig"
)

// Metrics are what a process counts.
type Metrics map[string]*dto.MetricFamily

func parseMetrics(text []byte) Metrics {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	rig.Check(err, "parsing metrics")
	return families
}

// Sum adds up the counters and gauges of a name that have a label with one of the values, all without a label.
func (m Metrics) Sum(name, label string, values ...string) float64 {
	total := 0.0
	for _, metric := range m[name].GetMetric() {
		if label == "" || slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == label && slices.Contains(values, l.GetValue())
		}) {
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return total
}

// Histogram adds up the histograms of a name.
func (m Metrics) Histogram(name string) Histogram {
	h := Histogram{UpTo: map[float64]float64{}}
	for _, metric := range m[name].GetMetric() {
		h.Count += float64(metric.GetHistogram().GetSampleCount())
		h.Sum += metric.GetHistogram().GetSampleSum()
		for _, b := range metric.GetHistogram().GetBucket() {
			h.UpTo[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return h
}

// Histogram is how many observations there were up to and including each bound.
type Histogram struct {
	UpTo       map[float64]float64
	Count, Sum float64
}

// Minus returns what was observed since before.
func (h Histogram) Minus(before Histogram) Histogram {
	since := Histogram{map[float64]float64{}, h.Count - before.Count, h.Sum - before.Sum}
	for bound, n := range h.UpTo {
		since.UpTo[bound] = n - before.UpTo[bound]
	}
	return since
}

// Median estimates the middle observation: it takes those between two bounds to be spread evenly. It is 0 without any.
func (h Histogram) Median() float64 {
	if h.Count == 0 {
		return 0
	}
	low, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h.UpTo)) {
		n := h.UpTo[bound]
		if n > below && n >= h.Count/2 {
			if math.IsInf(bound, 1) {
				return low
			}
			return low + (bound-low)*(h.Count/2-below)/(n-below)
		}
		low, below = bound, n
	}
	return low
}

// Mean is 0 without observations.
func (h Histogram) Mean() float64 { return h.Sum / max(h.Count, 1) }
