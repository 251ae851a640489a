package placementpolicy

import (
	"k8s.io/component-base/metrics"

	"berth.dev/berth/pkg/informers"
)

var (
	licensesUsed = metrics.NewDesc("berth_licenses_used", "Licenses that pods hold, by rule.",
		[]string{"policy", "rule", "license"}, nil, metrics.ALPHA, "")
	licenseLimit = metrics.NewDesc("berth_licenses_limit", "Licenses that there are, by rule.",
		[]string{"policy", "rule", "license"}, nil, metrics.ALPHA, "")
	policyCount = metrics.NewDesc("berth_placement_policies",
		"Placement policies by whether all of their rules can be evaluated.", []string{"accepted"}, nil, metrics.ALPHA, "")
)

var published = informers.NewPublished((*book).collect, licensesUsed, licenseLimit, policyCount)

// collect tells what holds now.
func (b *book) collect(ch chan<- metrics.Metric) {
	v := b.view.Load()
	if v == nil {
		return
	}
	for accepted, n := range map[string]int{"true": len(v.policies) - v.rejected(), "false": v.rejected()} {
		ch <- metrics.NewLazyConstMetric(policyCount, metrics.GaugeValue, float64(n), accepted)
	}
	set, used := b.ledger.Used()
	if set == nil {
		return
	}
	for i, limit := range set.Limits() {
		ch <- metrics.NewLazyConstMetric(licensesUsed, metrics.GaugeValue, float64(used[i]), limit.Policy, limit.Rule,
			limit.License)
		ch <- metrics.NewLazyConstMetric(licenseLimit, metrics.GaugeValue, float64(limit.Count), limit.Policy, limit.Rule,
			limit.License)
	}
}
