package placementpolicy

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/policy"
)

// longestMessage keeps conditions short of what an event may hold.
const longestMessage = 900

// statusWriter writes what holds of each policy into its status, and says in an event when one cannot be evaluated.
// Only the scheduler that leads writes.
type statusWriter struct {
	*informers.StatusLoop
	book     *book
	client   *restclient.RESTClient
	recorder events.EventRecorderLogger
}

func newStatusWriter(b *book, client *restclient.RESTClient, recorder events.EventRecorderLogger) *statusWriter {
	return &statusWriter{StatusLoop: informers.NewStatusLoop(), book: b, client: client, recorder: recorder}
}

// run writes until ctx ends.
func (w *statusWriter) run(ctx context.Context) {
	w.Run(ctx, w.book.synced, func() bool {
		v := w.book.view.Load()
		return v != nil && len(v.policies) > 0
	}, func(ctx context.Context) bool { return w.write(ctx, w.book.view.Load()) })
}

// write writes the statuses that have changed and reports whether all were written.
func (w *statusWriter) write(ctx context.Context, v *view) bool {
	used := map[string][]placementv1alpha1.LicenseStatus{}
	set, counts := w.book.ledger.Used()
	if set != v.set {
		return false
	}
	for i, limit := range set.Limits() {
		used[limit.Policy] = append(used[limit.Policy], placementv1alpha1.LicenseStatus{Name: limit.Rule, Used: counts[i]})
	}
	done := true
	for _, p := range v.policies {
		// The newest status, which may be younger than the spec that the rules were made of.
		obj, exists, err := w.book.policies.GetStore().GetByKey(p.Name)
		if err != nil || !exists {
			continue
		}
		if known := obj.(*placementv1alpha1.PlacementPolicy); known.UID == p.UID {
			err := w.writeOne(ctx, p, &known.Status, used[p.Name], v.problems[p.Name])
			if err != nil {
				klog.FromContext(ctx).Error(err, "Writing the status of a placement policy failed, trying again", "policy", p.Name)
				done = false
			}
		}
	}
	return done
}

func (w *statusWriter) writeOne(ctx context.Context, p *placementv1alpha1.PlacementPolicy,
	known *placementv1alpha1.PlacementPolicyStatus,
	used []placementv1alpha1.LicenseStatus, problems field.ErrorList) error {
	status := known.DeepCopy()
	status.ObservedGeneration, status.Licenses = p.Generation, used
	condition := accepted(p, problems)
	news := meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(status, known) {
		return nil
	}
	// A list without elements would be left out of the patch, and the old one stay.
	if status.Licenses == nil {
		status.Licenses = []placementv1alpha1.LicenseStatus{}
	}
	err := informers.PatchStatus(ctx, w.client, policyKind, p, map[string]any{
		"observedGeneration": status.ObservedGeneration, "licenses": status.Licenses, "conditions": status.Conditions})
	if err != nil {
		return err
	}
	if news && len(problems) > 0 {
		about := &v1.ObjectReference{APIVersion: placementv1alpha1.SchemeGroupVersion.String(), Kind: "PlacementPolicy",
			Name: p.Name, UID: p.UID}
		w.recorder.WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning, condition.Reason, "Reading",
			"%s", condition.Message)
	}
	return nil
}

// accepted is the condition of a policy.
func accepted(p *placementv1alpha1.PlacementPolicy, problems field.ErrorList) metav1.Condition {
	c := metav1.Condition{Type: placementv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Evaluated",
		ObservedGeneration: p.Generation,
		Message:            "all rules can be evaluated"}
	broken, risky := split(problems)
	effect := "the pods that it may concern are refused (failurePolicy Fail)"
	if p.Spec.FailurePolicy == placementv1alpha1.Ignore {
		effect = "the rule is left out (failurePolicy Ignore)"
	}
	switch {
	case len(broken) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Invalid"
		c.Message = shorten(broken.ToAggregate().Error()) + "; where this decides, " + effect
	case len(risky) > 0:
		c.Reason = "MayFail"
		c.Message = shorten(risky.ToAggregate().Error()) + "; where it fails, " + effect
	}
	return c
}

// split tells rules that cannot be evaluated from those that may fail for some objects.
func split(problems field.ErrorList) (broken, risky field.ErrorList) {
	for _, p := range problems {
		if policy.MayFail(p) {
			risky = append(risky, p)
		} else {
			broken = append(broken, p)
		}
	}
	return broken, risky
}

// rejected counts the policies with a rule that cannot be evaluated.
func (v *view) rejected() int {
	n := 0
	for _, problems := range v.problems {
		if broken, _ := split(problems); len(broken) > 0 {
			n++
		}
	}
	return n
}

func shorten(message string) string {
	if len(message) > longestMessage {
		return message[:longestMessage] + "…"
	}
	return message
}
