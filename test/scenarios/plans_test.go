package scenarios_test

import (
	"context"
	"fmt"
)

// plansMetric counts the plans that the scheduler has made.
const plansMetric = "berth_gang_plan_duration_seconds"

// countPlans returns how many plans the box's scheduler has made, for the pods of all scripts.
func (w *world) countPlans(ctx context.Context) (int, error) {
	family, err := w.cluster.metric(ctx, plansMetric)
	if err != nil {
		return 0, err
	}
	if family == nil {
		return 0, fmt.Errorf("the scheduler has no metric %s", plansMetric)
	}
	plans := 0
	for _, m := range family.GetMetric() {
		plans += int(m.GetHistogram().GetSampleCount())
	}
	return plans, nil
}

// doCountPlans notes how many plans were made until now. A script that counts has its scheduler to itself.
func (w *world) doCountPlans(ctx context.Context, _ *line) (err error) {
	w.plans, err = w.countPlans(ctx)
	return err
}

// checkPlans wants no more than a number of plans to have been made since they were counted.
func (w *world) checkPlans(ctx context.Context, most int) error {
	now, err := w.countPlans(ctx)
	if err != nil {
		return err
	}
	if made := now - w.plans; made > most {
		return fmt.Errorf("%d plans were made, want no more than %d", made, most)
	}
	return nil
}
