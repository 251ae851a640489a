package overview

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Status is the summary of a cluster.
type Status struct {
	// Taken is the moment.
	Taken     time.Time `json:"taken"`
	Scheduler Health    `json:"scheduler"`
	Totals    Totals    `json:"totals"`
	// JobsByState counts the workloads that have not ended.
	JobsByState map[JobState]int `json:"jobsByState"`
	// Waiting are the workloads with pods that have no node, those first that are furthest from running.
	Waiting []Job `json:"waiting"`
	// LeftOut are the kinds that could not be read, and devices that do not count yet, each with the reason.
	LeftOut []string `json:"leftOut"`
}

// Health says whether the scheduler runs, according to its lease.
type Health struct {
	// Lease is namespace/name of the Lease, empty if the configuration has no leader election.
	Lease   string `json:"lease,omitempty"`
	Healthy bool   `json:"healthy"`
	// Leader is the holder of the lease, and RenewedSecondsAgo the time since its last renewal.
	Leader            string  `json:"leader,omitempty"`
	RenewedSecondsAgo float64 `json:"renewedSecondsAgo"`
	// Message is the health as part of a sentence.
	Message string `json:"message"`
}

// Status summarizes the cluster.
func (c *Cluster) Status(scheduler Health) *Status {
	s := &Status{
		Taken: c.Taken, Scheduler: scheduler, Totals: c.Totals, LeftOut: c.LeftOut,
		JobsByState: map[JobState]int{}, Waiting: []Job{},
	}
	for i := range c.Jobs {
		j := &c.Jobs[i]
		s.JobsByState[j.State]++
		if j.State != JobStarting && j.State != JobRunning {
			s.Waiting = append(s.Waiting, *j)
		}
	}
	return s
}

// HealthOf reads the lease of the scheduler's leader.
func HealthOf(ctx context.Context, client kubernetes.Interface, namespace, name string, now time.Time) Health {
	if name == "" {
		return Health{Message: "not known: its configuration has no leader election"}
	}
	h := Health{Lease: namespace + "/" + name}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		h.Message = fmt.Sprintf("not running: there is no Lease %s", h.Lease)
		return h
	case err != nil:
		h.Message = "not known: " + plainText(err.Error())
		return h
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil:
		h.Message = fmt.Sprintf("not running: no process holds Lease %s", h.Lease)
		return h
	}
	h.Leader, h.RenewedSecondsAgo = *lease.Spec.HolderIdentity, max(0, now.Sub(lease.Spec.RenewTime.Time).Seconds())
	valid := time.Minute
	if lease.Spec.LeaseDurationSeconds != nil {
		valid = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	ago := (time.Duration(h.RenewedSecondsAgo) * time.Second).String()
	if h.Healthy = now.Sub(lease.Spec.RenewTime.Time) <= valid; h.Healthy {
		h.Message = fmt.Sprintf("healthy: %s leads, and renewed its lease %s ago", h.Leader, ago)
	} else {
		h.Message = fmt.Sprintf("not running: %s has not renewed Lease %s for %s", h.Leader, h.Lease, ago)
	}
	return h
}
