package gangloop

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/members"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/profiles"
)

// regressionFrom is the smallest step of the clock on the wall that counts: the queue's back-offs are as long.
const regressionFrom = time.Second

// wallClock notices that the machine's clock was set back.
type wallClock struct {
	began time.Time
	// passed and wall are the last reading: the time since began by the monotonic clock, and the clock on the wall.
	passed time.Duration
	wall   time.Time

	members  *members.Directory
	profiles *profiles.Set
}

// regression returns by how much the clock was set back since the last call.
func (c *wallClock) regression(now time.Time) time.Duration {
	if c.began.IsZero() {
		c.began = now
	}
	return c.read(now.Sub(c.began), now.Round(0))
}

func (c *wallClock) read(passed time.Duration, wall time.Time) time.Duration {
	before := *c
	c.passed, c.wall = passed, wall
	if before.wall.IsZero() {
		return 0
	}
	return max(0, passed-before.passed-wall.Sub(before.wall))
}

// follow puts every pending pod into the scheduling queue's active part when the clock was set back. The
// scheduler's back-offs end at a time of the clock on the wall (alignToWindow in kube-scheduler's backoff_queue.go
// drops the monotonic reading): without this a pod whose binding has failed a moment before would be off for as long as
// the clock was set back, be it an hour.
func (c *wallClock) follow(ctx context.Context, now time.Time) {
	back := c.regression(now)
	if back < regressionFrom {
		return
	}
	logger := klog.FromContext(ctx)
	all, err := c.members.Lister.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Listing pods failed, those in back-off wait until the clock has caught up")
		return
	}
	pending := map[string]*v1.Pod{}
	for _, pod := range all {
		if pod.Spec.NodeName == "" && !podview.Finished(pod) && c.profiles.Of(pod) != nil {
			pending[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	logger.Info(
		"The clock of this machine was set back: pending pods are tried again, as their back-off would end by that clock",
		"by", back, "pods", len(pending))
	if len(pending) > 0 {
		c.profiles.Any().Activate(logger, pending)
	}
}
