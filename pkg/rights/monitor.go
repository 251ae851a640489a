package rights

import (
	"context"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// checkAll is how often all rights are asked for, and checkMissing how often those that were missing.
	checkAll, checkMissing = 10 * time.Minute, 15 * time.Second
	// checkTimeout bounds one round, so that an API server that hangs does not end the checks.
	checkTimeout = 30 * time.Second
)

// Monitor reports the rights that the scheduler's own account lacks until ctx ends: in the log, in the metric
// berth_right_missing and to tell, once for each right.
func Monitor(ctx context.Context, client kubernetes.Interface, needs []Need, tell func(Missing)) {
	registerMetrics()
	logger := klog.FromContext(ctx)
	known := map[string]Missing{}
	var complete time.Time
	asked, said := needs, false
	for {
		round, cancel := context.WithTimeout(ctx, checkTimeout)
		missing, err := Check(round, client, asked, nil)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !said:
			said = true
			logger.Error(err, "Checking the scheduler's own rights failed, trying again")
		case err == nil:
			said = false
			if len(asked) == len(needs) {
				complete = time.Now()
			}
			known = report(logger, known, missing, tell)
		}
		asked = of(needs, known)
		if time.Since(complete) >= checkAll {
			asked = needs
		}
		pause := time.NewTimer(checkMissing)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// report tells what has changed, and returns what is missing now.
func report(logger klog.Logger, known map[string]Missing, missing []Missing, tell func(Missing)) map[string]Missing {
	now := map[string]Missing{}
	for _, m := range missing {
		right := m.Right()
		now[right] = m
		missingRights.WithLabelValues(m.labels()...).Set(1)
		if _, told := known[right]; told {
			continue
		}
		logger.Error(nil, "The scheduler's account lacks a right", "right", right, "weight", m.Weight, "neededBy", m.For,
			"effect", m.Lost)
		tell(m)
	}
	for right, m := range known {
		if _, still := now[right]; !still {
			missingRights.DeleteLabelValues(m.labels()...)
			logger.Info("The scheduler's account has the right now", "right", right)
		}
	}
	return now
}

// of returns the needs that have to do with rights that are missing.
func of(needs []Need, known map[string]Missing) []Need {
	var some []Need
	for _, n := range needs {
		for _, verb := range n.Verbs {
			one := Missing{Group: n.Group, Resource: n.Resource, Namespace: n.Namespace, Name: n.Name, Verb: verb}
			if _, missing := known[one.Right()]; missing {
				some = append(some, n)
				break
			}
		}
	}
	return some
}

func (m Missing) labels() []string {
	return []string{Qualified(m.Group, m.Resource), m.Verb, string(m.Weight), strings.Join(m.For, ",")}
}
