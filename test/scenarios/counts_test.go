package scenarios_test

import (
	"context"
	"fmt"
)

// counted are what is counted of the box's scheduler, for the pods of all scripts, and the metrics that count it: plans
// of gangs, and tries of pods, successful or not.
var counted = map[string]string{
	"plans": "berth_gang_plan_duration_seconds",
	"tries": "scheduler_schedule_attempts_total",
}

// countOf returns how many there were until now.
func (w *world) countOf(ctx context.Context, what string) (int, error) {
	family, err := w.cluster.metric(ctx, counted[what])
	if err != nil {
		return 0, err
	}
	if family == nil {
		return 0, fmt.Errorf("the scheduler has no metric %s", counted[what])
	}
	n := 0
	for _, m := range family.GetMetric() {
		n += int(m.GetHistogram().GetSampleCount()) + int(m.GetCounter().GetValue())
	}
	return n, nil
}

// doCount notes how many plans or tries there were until now. A script that counts has its scheduler to itself.
func (w *world) doCount(ctx context.Context, l *line) (err error) {
	what := l.arg(0)
	if _, known := counted[what]; !known {
		return fmt.Errorf("%q cannot be counted: want plans or tries", what)
	}
	w.counts[what], err = w.countOf(ctx, what)
	return err
}

// checkCount wants no more than a number since it was counted.
func (w *world) checkCount(ctx context.Context, what string, most int) error {
	now, err := w.countOf(ctx, what)
	if err != nil {
		return err
	}
	if made := now - w.counts[what]; made > most {
		return fmt.Errorf("there were %d %s, want no more than %d", made, what, most)
	}
	return nil
}
