package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// +kubebuilder:object:root=true

// SLAAwareArgs are the arguments of the SLAAware plugin.
type SLAAwareArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Reads what is measured of nodes from Prometheus. Off by default: then the plugin scores nothing.
	Signals *SLOSignals `json:"signals,omitempty"`

	// How much of its objective should be left to a pod, in percent: of nodes that meet it, those with less headroom
	// score lower. From 0 to 90, default 10.
	HeadroomPercent *int32 `json:"headroomPercent,omitempty"`
}

// SLOSignals turn on the figures by which nodes meet the objectives of pods. They are read in the background;
// scheduling never waits for them, and nodes without a figure are neither favored nor avoided. At least one of the
// queries is required, each of at most 16 KiB.
type SLOSignals struct {
	// Server to ask. Its `matchLabels` must be empty: write them into the queries. Required.
	Prometheus Prometheus `json:"prometheus"`
	// PromQL query for the latency of each node in milliseconds: an instant vector with one of the host labels. Default
	// none.
	LatencyMsQuery string `json:"latencyMsQuery,omitempty"`
	// PromQL query for the throughput that each node reaches, in the unit of `berth.dev/slo-throughput`. Default none.
	ThroughputQuery string `json:"throughputQuery,omitempty"`
	// Labels that may name the node of a series; the first one present decides. A value is taken for a node's name or
	// for its `kubernetes.io/hostname` label. Default `node`, `Hostname`, `hostname`.
	HostLabels []string `json:"hostLabels,omitempty"`
	// How old a sample may be for the server to give it, and how long what it gave counts while it does not answer.
	// Servers that do not honor `lookback_delta` in instant queries, such as Prometheus 2.42, give samples of up to
	// their own limit, `5m` by default. From the interval to `1h`, default `3m`.
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

const (
	sloInterval     = 30 * time.Second
	maxQueryBytes   = 16 << 10
	maxHeadroom     = 90
	defaultHeadroom = int32(10)
)

// SetDefaults fills the fields that were left out.
func (a *SLAAwareArgs) SetDefaults() {
	setDefault(&a.HeadroomPercent, defaultHeadroom)
	s := a.Signals
	if s == nil {
		return
	}
	setDefaultsPrometheus(&s.Prometheus, sloInterval)
	if s.HostLabels == nil {
		s.HostLabels = defaultHostLabels()
	}
	setDefault(&s.MaxAge, metav1.Duration{Duration: defaultSampleAge})
}

// Validate checks defaulted args that stand at path in the configuration.
func (a *SLAAwareArgs) Validate(path *field.Path) error {
	errs := validateRange(path.Child("headroomPercent"), a.HeadroomPercent, 0, maxHeadroom)
	if a.Signals != nil {
		errs = append(errs, validateSLOSignals(path.Child("signals"), a.Signals)...)
	}
	return errs.ToAggregate()
}

func validateSLOSignals(path *field.Path, s *SLOSignals) field.ErrorList {
	errs := validatePrometheus(&s.Prometheus, path.Child("prometheus"))
	if len(s.Prometheus.MatchLabels) > 0 {
		errs = append(errs, field.Forbidden(path.Child("prometheus", "matchLabels"),
			"has no effect on queries of your own: write the labels into them"))
	}
	if s.LatencyMsQuery == "" && s.ThroughputQuery == "" {
		errs = append(errs, field.Required(path, "want latencyMsQuery, throughputQuery or both"))
	}
	for _, q := range []struct{ name, query string }{{"latencyMsQuery", s.LatencyMsQuery},
		{"throughputQuery", s.ThroughputQuery}} {
		if len(q.query) > maxQueryBytes {
			errs = append(errs, field.TooLong(path.Child(q.name), "", maxQueryBytes))
		}
	}
	errs = append(errs, validateHostLabels(path.Child("hostLabels"), s.HostLabels)...)
	return append(errs, validateMaxAge(path.Child("maxAge"), s.MaxAge, &s.Prometheus, maxSampleAge)...)
}
