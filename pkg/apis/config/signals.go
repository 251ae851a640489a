package config

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/prometheus/common/model"
)

// GPUSignals turn on the live signals of GPUs, which dcgm-exporter measures and Prometheus keeps: utilisation,
// framebuffer memory, fatal XID errors and failed row remaps. They are read in the background; scheduling never waits
// for them and goes on without them when they are missing or old.
type GPUSignals struct {
	Prometheus Prometheus `json:"prometheus"`
	// HostLabels are the labels that may name the node of a series, the first one present decides. A value is taken for
	// a node's name or for its kubernetes.io/hostname label. Default: node, Hostname, hostname (the first set by
	// relabelling, the others by older and newer exporters).
	HostLabels []string `json:"hostLabels,omitempty"`
	// FullWeightAge is the age up to which a sample counts in full. Default: 60s.
	FullWeightAge *metav1.Duration `json:"fullWeightAge,omitempty"`
	// ZeroWeightAge is the age from which a sample no longer counts, at most 1h; between the two ages its weight falls
	// linearly. Default: 180s.
	ZeroWeightAge *metav1.Duration `json:"zeroWeightAge,omitempty"`
	// MinCoveragePercent of the GPU nodes must have a sample that counts, otherwise the signal is off for all of them: a
	// node must not be favoured or shunned for being measured. From 1 to 100. Default: 80.
	MinCoveragePercent *int32 `json:"minCoveragePercent,omitempty"`
	// FatalXIDs are the XID codes that make a GPU unfit for new work. An empty list turns the check off. Default: 46, 48,
	// 62, 64, 74, 79, 95, 119, 120, 140, 143, whose remedy in NVIDIA's catalogue of XID errors is to reset the GPU or the
	// node or to inspect its links; codes that an application causes, such as 13, 31, 43 and 45, are not among them.
	FatalXIDs []int32 `json:"fatalXIDs"`
	// FaultWindow is how long a fatal XID counts after it was seen, from 1m to 24h. The exporter repeats the last code
	// until the driver is reloaded, so it is the change to that code that counts. Default: 1h.
	FaultWindow *metav1.Duration `json:"faultWindow,omitempty"`
}

const (
	minFaultWindow  = time.Minute
	maxFaultWindow  = 24 * time.Hour
	maxZeroWeight   = time.Hour
	maxPriceAge     = 30 * 24 * time.Hour
	largestXIDCode  = 9999
	gpuInterval     = 15 * time.Second
	priceInterval   = time.Minute
	defaultPriceAge = time.Hour
)

// SetDefaultsGPUSignals fills the fields that were left out. Nil, which is off, stays nil.
func SetDefaultsGPUSignals(s *GPUSignals) {
	if s == nil {
		return
	}
	setDefaultsPrometheus(&s.Prometheus, gpuInterval)
	if s.HostLabels == nil {
		s.HostLabels = defaultHostLabels()
	}
	setDefault(&s.FullWeightAge, metav1.Duration{Duration: 60 * time.Second})
	setDefault(&s.ZeroWeightAge, metav1.Duration{Duration: 180 * time.Second})
	setDefault(&s.MinCoveragePercent, 80)
	if s.FatalXIDs == nil {
		s.FatalXIDs = []int32{46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143}
	}
	setDefault(&s.FaultWindow, metav1.Duration{Duration: time.Hour})
}

// ValidateGPUSignals returns what is wrong with args whose defaults are set, each fault with its path. Nil is valid.
func ValidateGPUSignals(s *GPUSignals, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validatePrometheus(&s.Prometheus, path.Child("prometheus"))
	errs = append(errs, validateHostLabels(path.Child("hostLabels"), s.HostLabels)...)
	full, zero := s.FullWeightAge.Duration, s.ZeroWeightAge.Duration
	if full < 0 || full >= zero {
		errs = append(errs, field.Invalid(path.Child("fullWeightAge"), full.String(),
			"must be from 0s to less than zeroWeightAge ("+zero.String()+")"))
	}
	if zero < time.Second || zero > maxZeroWeight {
		errs = append(errs, field.Invalid(path.Child("zeroWeightAge"), zero.String(), "must be from 1s to 1h"))
	}
	if percent := *s.MinCoveragePercent; percent < 1 || percent > 100 {
		errs = append(errs, field.Invalid(path.Child("minCoveragePercent"), percent, "must be from 1 to 100"))
	}
	for i, code := range s.FatalXIDs {
		switch at := path.Child("fatalXIDs").Index(i); {
		case code < 1 || code > largestXIDCode:
			errs = append(errs, field.Invalid(at, code, "must be an XID code, from 1 to 9999"))
		case slices.Contains(s.FatalXIDs[:i], code):
			errs = append(errs, field.Duplicate(at, code))
		}
	}
	if window := s.FaultWindow.Duration; window < minFaultWindow || window > maxFaultWindow {
		errs = append(errs, field.Invalid(path.Child("faultWindow"), window.String(), "must be from 1m to 24h"))
	}
	return errs
}

func defaultHostLabels() []string { return []string{"node", "Hostname", "hostname"} }

func validateHostLabels(path *field.Path, labels []string) field.ErrorList {
	var errs field.ErrorList
	if len(labels) == 0 {
		errs = append(errs, field.Required(path, "at least one label name"))
	}
	for i, label := range labels {
		switch at := path.Index(i); {
		case !model.LegacyValidation.IsValidLabelName(label) || label == model.MetricNameLabel:
			errs = append(errs, field.Invalid(at, label,
				"must be a Prometheus label name ([a-zA-Z_][a-zA-Z0-9_]*) other than __name__"))
		case slices.Contains(labels[:i], label):
			errs = append(errs, field.Duplicate(at, label))
		}
	}
	return errs
}

// PriceMetric names a kind of price series.
type PriceMetric string

const (
	// PriceMetricOpenCost is node_total_hourly_cost, a price by node.
	PriceMetricOpenCost PriceMetric = "OpenCost"
	// PriceMetricKarpenter is karpenter_cloudprovider_instance_type_offering_price_estimate, a price by instance type,
	// capacity type and zone.
	PriceMetricKarpenter PriceMetric = "Karpenter"
)

// PriceSignals turn on node prices from Prometheus. They are read in the background. An answer that fails, or lacks a
// price that was there before, leaves the last good value in force until MaxAge; from then on that price is unknown.
type PriceSignals struct {
	Prometheus Prometheus `json:"prometheus"`
	// Metrics to read: OpenCost, Karpenter. Default: both; the price of a node precedes that of its offering.
	Metrics []PriceMetric `json:"metrics,omitempty"`
	// MaxAge of a price, from the interval to 720h. Default: 1h.
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// SetDefaultsPriceSignals fills the fields that were left out. Nil, which is off, stays nil.
func SetDefaultsPriceSignals(s *PriceSignals) {
	if s == nil {
		return
	}
	setDefaultsPrometheus(&s.Prometheus, priceInterval)
	if s.Metrics == nil {
		s.Metrics = []PriceMetric{PriceMetricOpenCost, PriceMetricKarpenter}
	}
	setDefault(&s.MaxAge, metav1.Duration{Duration: defaultPriceAge})
}

// ValidatePriceSignals returns what is wrong with args whose defaults are set, each fault with its path. Nil is valid.
func ValidatePriceSignals(s *PriceSignals, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validatePrometheus(&s.Prometheus, path.Child("prometheus"))
	if len(s.Metrics) == 0 {
		errs = append(errs, field.Required(path.Child("metrics"), "at least one of OpenCost, Karpenter"))
	}
	for i, metric := range s.Metrics {
		switch at := path.Child("metrics").Index(i); {
		case metric != PriceMetricOpenCost && metric != PriceMetricKarpenter:
			errs = append(errs, field.NotSupported(at, metric, []PriceMetric{PriceMetricOpenCost, PriceMetricKarpenter}))
		case slices.Contains(s.Metrics[:i], metric):
			errs = append(errs, field.Duplicate(at, metric))
		}
	}
	if age, interval := s.MaxAge.Duration, s.Prometheus.Interval.Duration; age < interval || age > maxPriceAge {
		errs = append(errs, field.Invalid(path.Child("maxAge"), age.String(), "must be from the interval ("+interval.String()+
			") to 720h"))
	}
	return errs
}
