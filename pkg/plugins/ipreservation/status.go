package ipreservation

import (
	"context"
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/address"
	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	"berth.dev/berth/pkg/informers"
)

const (
	// longestMessage keeps conditions short of what an event may hold.
	longestMessage = 900
	// mostNamed is how many other pools a condition names.
	mostNamed = 5
)

// writeStatuses writes the statuses of pools that have changed and reports whether all were written.
func (b *book) writeStatuses(ctx context.Context) bool {
	sums := map[string]address.Usage{}
	for _, u := range b.ledger.Usages() {
		sums[u.Pool] = sums[u.Pool].Plus(u)
	}
	done := true
	for _, p := range b.poolStates() {
		// The newest status, which may be younger than the spec that was read.
		known := b.poolNamed(p.Name)
		if known == nil || known.UID != p.UID {
			continue
		}
		if err := b.writeStatus(ctx, p, &known.Status, sums[p.Name]); err != nil {
			klog.FromContext(ctx).Error(err, "Writing the status of an IPPool failed, trying again", "pool", p.Name)
			done = false
		}
	}
	return done
}

func (b *book) writeStatus(ctx context.Context, p poolState, known *networkv1alpha1.IPPoolStatus,
	u address.Usage) error {
	status := known.DeepCopy()
	status.ObservedGeneration = p.Generation
	status.Addresses, status.Used, status.Free = atMost(u.Size()), atMost(u.Used), atMost(u.Free)
	condition := accepted(p)
	news := meta.SetStatusCondition(&status.Conditions, condition)
	if equality.Semantic.DeepEqual(status, known) {
		return nil
	}
	err := informers.PatchStatus(ctx, b.client, poolKind, p,
		map[string]any{"observedGeneration": status.ObservedGeneration,
			"addresses": status.Addresses, "used": status.Used, "free": status.Free, "conditions": status.Conditions})
	if err != nil {
		return err
	}
	if news && condition.Status == metav1.ConditionFalse {
		about := &v1.ObjectReference{APIVersion: networkv1alpha1.SchemeGroupVersion.String(), Kind: "IPPool", Name: p.Name,
			UID: p.UID}
		b.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(about, nil, v1.EventTypeWarning, condition.Reason,
			"Reading", "%s", condition.Message)
	}
	return nil
}

// accepted is the condition of a pool.
func accepted(p poolState) metav1.Condition {
	c := metav1.Condition{Type: networkv1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Usable",
		ObservedGeneration: p.Generation,
		Message:            "addresses are given out"}
	switch {
	case len(p.problems) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Invalid"
		c.Message = "no address is given out: " + p.problems.ToAggregate().Error()
	case len(p.overlaps) > 0:
		c.Reason = "Overlaps"
		c.Message = "has addresses in common with " + named(p.overlaps) +
			"; each is given once, and counts in every pool that has it"
	}
	if len(c.Message) > longestMessage {
		c.Message = strings.ToValidUTF8(c.Message[:longestMessage], "") + "…"
	}
	return c
}

func named(pools []string) string {
	if left := len(pools) - mostNamed; left > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(pools[:mostNamed], ", "), left)
	}
	return strings.Join(pools, ", ")
}

// atMost is n, or the largest number that an API object may have.
func atMost(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
