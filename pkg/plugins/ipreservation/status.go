package ipreservation

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/address"
	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

// writeStatuses writes the statuses of pools that have changed and reports whether all were written.
func (ad *addresses) writeStatuses(ctx context.Context) bool {
	usages := ad.usageByPool()
	done := true
	for _, obj := range ad.pools.GetStore().List() {
		p := obj.(*berthv1alpha1.IPPool)
		if err := ad.writeStatus(ctx, p, usages[p.Name]); err != nil {
			klog.FromContext(ctx).Error(err, "Writing the status of an IPPool failed, trying again", "pool", p.Name)
			done = false
		}
	}
	return done
}

func (ad *addresses) writeStatus(ctx context.Context, p *berthv1alpha1.IPPool, u address.Usage) error {
	condition := metav1.Condition{Type: berthv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Usable",
		ObservedGeneration: p.Generation, Message: "addresses are given out"}
	if pool, _ := podview.AddressPool(p); pool.Problem != "" {
		condition.Status, condition.Reason = metav1.ConditionFalse, "Invalid"
		condition.Message = "no address is given out: " + pool.Problem
	}
	status := p.Status.DeepCopy()
	status.Addresses, status.Used, status.Free = u.Used+u.Free, u.Used, u.Free
	meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(status, &p.Status) {
		return nil
	}
	return informers.PatchStatus(ctx, ad.client, poolKind, p, map[string]any{
		"addresses": status.Addresses, "used": status.Used, "free": status.Free, "conditions": status.Conditions})
}

// usageByPool adds up the domains of each pool.
func (ad *addresses) usageByPool() map[string]address.Usage {
	sums := map[string]address.Usage{}
	for at, u := range ad.ledger.Usages() {
		sum := sums[at.Pool]
		sums[at.Pool] = address.Usage{Free: sum.Free + u.Free, Used: sum.Used + u.Used}
	}
	return sums
}

var (
	used = metrics.NewDesc("berth_ip_addresses_used", "Addresses of a pool that are reserved or promised.",
		[]string{"pool", "domain"}, nil, metrics.ALPHA, "")
	free = metrics.NewDesc("berth_ip_addresses_free", "Addresses of a pool that are free.", []string{"pool", "domain"},
		nil, metrics.ALPHA, "")
)

var published = informers.NewPublished(used, free)

// Collect returns the current values.
func (ad *addresses) Collect(ch chan<- metrics.Metric) {
	for at, u := range ad.ledger.Usages() {
		ch <- metrics.NewLazyConstMetric(used, metrics.GaugeValue, float64(u.Used), at.Pool, at.Domain.String())
		ch <- metrics.NewLazyConstMetric(free, metrics.GaugeValue, float64(u.Free), at.Pool, at.Domain.String())
	}
}
