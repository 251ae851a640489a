package config

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/prometheus/common/model"
)

// GPUSignals turn on the live signals of GPUs, which dcgm-exporter measures and Prometheus keeps: utilization,
// framebuffer memory, fatal XID errors and failed row remaps. They are read in the background; scheduling never waits
// for them and goes on without them when they are missing or old.
type GPUSignals struct {
	// Server with the measurements. Required.
	Prometheus Prometheus `json:"prometheus"`
	// Labels that may name the node of a series; the first one present decides. A value is taken for a node's name or
	// for its `kubernetes.io/hostname` label. Default `node`, `Hostname`, `hostname`: the first is set by relabeling,
	// the others by older and newer exporters.
	HostLabels []string `json:"hostLabels,omitempty"`
	// Largest age of a sample. From the interval to `1h`, default `3m`.
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
	// XID codes that make a GPU unfit for new work, from 1 to 9999; an empty list turns the check off. Default 46, 48,
	// 62, 64, 74, 79, 95, 119, 120, 140, 143, whose remedy in NVIDIA's catalog of XID errors is to reset the GPU or the
	// node or to inspect its links. Codes that an application causes, such as 13, 31, 43 and 45, are not among them.
	FatalXIDs []int32 `json:"fatalXIDs"`
	// How long a fatal XID counts after it was seen. The exporter repeats the last code until the driver is reloaded,
	// so it is the change to that code that counts. From `1m` to `24h`, default `1h`.
	FaultWindow *metav1.Duration `json:"faultWindow,omitempty"`
}

const (
	minFaultWindow  = time.Minute
	maxFaultWindow  = 24 * time.Hour
	maxSampleAge    = time.Hour
	maxPriceAge     = 30 * 24 * time.Hour
	largestXIDCode  = 9999
	gpuInterval     = 15 * time.Second
	priceInterval   = time.Minute
	defaultPriceAge = time.Hour
	// defaultSampleAge allows for exporters that measure every 30s: their samples are up to 90s old when they are read.
	defaultSampleAge = 3 * time.Minute
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
	setDefault(&s.MaxAge, metav1.Duration{Duration: defaultSampleAge})
	if s.FatalXIDs == nil {
		s.FatalXIDs = []int32{46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143}
	}
	setDefault(&s.FaultWindow, metav1.Duration{Duration: time.Hour})
}

// validateGPUSignals returns the errors of defaulted args. Nil is valid.
func validateGPUSignals(s *GPUSignals, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validatePrometheus(&s.Prometheus, path.Child("prometheus"))
	errs = append(errs, validateHostLabels(path.Child("hostLabels"), s.HostLabels)...)
	errs = append(errs, validateMaxAge(path.Child("maxAge"), s.MaxAge, &s.Prometheus, maxSampleAge)...)
	errs = append(errs, validateEach(path.Child("fatalXIDs"), s.FatalXIDs, func(code int32) []string {
		if code < 1 || code > largestXIDCode {
			return []string{"must be an XID code, from 1 to 9999"}
		}
		return nil
	})...)
	if window := s.FaultWindow.Duration; window < minFaultWindow || window > maxFaultWindow {
		errs = append(errs, field.Invalid(path.Child("faultWindow"), window.String(), "must be from 1m to 24h"))
	}
	return errs
}

func defaultHostLabels() []string { return []string{"node", "Hostname", "hostname"} }

func validateHostLabels(path *field.Path, labels []string) field.ErrorList {
	if len(labels) == 0 {
		return field.ErrorList{field.Required(path, "at least one label name")}
	}
	return validateEach(path, labels, notPrometheusLabel)
}

// notPrometheusLabel returns what is wrong with the name of a label, nil if nothing is.
func notPrometheusLabel(name string) []string {
	if !model.LegacyValidation.IsValidLabelName(name) || name == model.MetricNameLabel {
		return []string{"must be a Prometheus label name ([a-zA-Z_][a-zA-Z0-9_]*) other than __name__"}
	}
	return nil
}

// validateMaxAge expects the default to be set.
func validateMaxAge(path *field.Path, age *metav1.Duration, from *Prometheus, most time.Duration) field.ErrorList {
	if interval := from.Interval.Duration; age.Duration < interval || age.Duration > most {
		return field.ErrorList{field.Invalid(path, age.Duration.String(),
			fmt.Sprintf("must be from the interval (%s) to %gh", interval, most.Hours()))}
	}
	return nil
}

// PriceSignals turn on node prices from Prometheus: `node_total_hourly_cost` of OpenCost, and
// `karpenter_cloudprovider_instance_type_offering_price_estimate` of Karpenter, by instance type, capacity type and
// zone. The price of a node precedes that of its offering. They are read in the background. An answer that fails, or
// lacks a price that was there before, leaves the last good value in force until `maxAge`; from then on that price is
// unknown.
type PriceSignals struct {
	// Server with the prices. Required.
	Prometheus Prometheus `json:"prometheus"`
	// Largest age of a price. From the interval to `720h`, default `1h`.
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// SetDefaultsPriceSignals fills the fields that were left out. Nil, which is off, stays nil.
func SetDefaultsPriceSignals(s *PriceSignals) {
	if s == nil {
		return
	}
	setDefaultsPrometheus(&s.Prometheus, priceInterval)
	setDefault(&s.MaxAge, metav1.Duration{Duration: defaultPriceAge})
}

// validatePriceSignals returns the errors of defaulted args. Nil is valid.
func validatePriceSignals(s *PriceSignals, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validatePrometheus(&s.Prometheus, path.Child("prometheus"))
	return append(errs, validateMaxAge(path.Child("maxAge"), s.MaxAge, &s.Prometheus, maxPriceAge)...)
}
