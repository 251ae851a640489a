package placementpolicy

import (
	"k8s.io/component-base/metrics"

	"berth.dev/berth/pkg/process/informers"
)

var (
	licensesUsed = metrics.NewDesc("berth_licenses_used", "Licenses that pods hold, by rule.",
		[]string{"policy", "rule", "license"}, nil, metrics.ALPHA, "")
	licenseLimit = metrics.NewDesc("berth_licenses_limit", "Licenses that there are, by rule.",
		[]string{"policy", "rule", "license"}, nil, metrics.ALPHA, "")
	policyCount = metrics.NewDesc("berth_placement_policies",
		"Placement policies by whether all of their rules can be evaluated.", []string{"accepted"}, nil, metrics.ALPHA, "")
)

var published = informers.NewPublished(licensesUsed, licenseLimit, policyCount)

// Collect returns the current values.
func (ps *policies) Collect(ch chan<- metrics.Metric) {
	v := ps.view.Load()
	if v == nil {
		return
	}
	rejected := len(v.problems)
	for accepted, n := range map[string]int{"true": len(v.policies) - rejected, "false": rejected} {
		ch <- metrics.NewLazyConstMetric(policyCount, metrics.GaugeValue, float64(n), accepted)
	}
	for _, u := range ps.uses(v) {
		ch <- metrics.NewLazyConstMetric(licensesUsed, metrics.GaugeValue, float64(u.Used), u.Policy, u.Rule, u.License)
		ch <- metrics.NewLazyConstMetric(licenseLimit, metrics.GaugeValue, float64(u.Count), u.Policy, u.Rule, u.License)
	}
}
