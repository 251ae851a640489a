package placementpolicy

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/process/informers"
)

// writeStatuses writes the statuses of policies that have changed, records an event for a policy that cannot be
// evaluated, and reports whether all was written. Only the scheduler that leads writes.
func (ps *policies) writeStatuses(ctx context.Context) bool {
	v := ps.current()
	used := map[string][]berthv1alpha1.LicenseStatus{}
	for _, u := range ps.uses(v) {
		used[u.Policy] = append(used[u.Policy], berthv1alpha1.LicenseStatus{Name: u.Rule, Used: u.Used})
	}
	done := true
	for _, p := range v.policies {
		// The newest status, which may be younger than the spec that the rules were made of.
		obj, exists, err := ps.informer.GetStore().GetByKey(p.Name)
		if err != nil || !exists {
			continue
		}
		known := &obj.(*berthv1alpha1.PlacementPolicy).Status
		status := known.DeepCopy()
		status.ObservedGeneration, status.Licenses = p.Generation, used[p.Name]
		if err := ps.writeStatus(ctx, p, known, status, v.accepted(p)); err != nil {
			klog.FromContext(ctx).Error(err, "Writing the status of a placement policy failed, trying again", "policy", p.Name)
			done = false
		}
	}
	return done
}

func (ps *policies) writeStatus(ctx context.Context, p *berthv1alpha1.PlacementPolicy,
	known, status *berthv1alpha1.PlacementPolicyStatus, condition metav1.Condition) error {
	news := meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(status, known) {
		return nil
	}
	// A list without elements would be left out of the patch, and the old one stay.
	if status.Licenses == nil {
		status.Licenses = []berthv1alpha1.LicenseStatus{}
	}
	err := informers.PatchStatus(ctx, ps.client, policyKind, p, map[string]any{
		"observedGeneration": status.ObservedGeneration, "licenses": status.Licenses, "conditions": status.Conditions})
	if err != nil {
		return err
	}
	if news && condition.Status == metav1.ConditionFalse {
		about := &v1.ObjectReference{APIVersion: berthv1alpha1.SchemeGroupVersion.String(), Kind: "PlacementPolicy",
			Name: p.Name, UID: p.UID}
		ps.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning,
			condition.Reason, "Reading", "%s", condition.Message)
	}
	return nil
}

// accepted is the condition of a policy.
func (v *view) accepted(p *berthv1alpha1.PlacementPolicy) metav1.Condition {
	c := metav1.Condition{Type: berthv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Evaluated",
		ObservedGeneration: p.Generation, Message: "all rules can be evaluated"}
	if problems := v.problems[p.Name]; len(problems) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, "Invalid"
		// An event holds no more than 1024 bytes.
		c.Message = fmt.Sprintf("%.900s; where this decides, the pods that it may concern are refused", problems[0])
	}
	return c
}

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
