package scenarios_test

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// doKill kills the scheduler; one that is just being started again is waited for.
func (w *world) doKill(ctx context.Context, l *line) error {
	if err := w.catch(ctx, l); err != nil {
		return err
	}
	return w.eventually(ctx, 10*time.Second, func() error {
		w.lose()
		defer w.lose()
		return w.cluster.kill(ctx)
	})
}

// doAway lets the API stand still for a while.
func (w *world) doAway(ctx context.Context, l *line) error {
	d, err := time.ParseDuration(l.arg(0))
	if err != nil {
		return err
	}
	if err := w.catch(ctx, l); err != nil {
		return err
	}
	defer w.lose()
	return w.cluster.freeze(ctx, d, w.lose)
}

// catch waits until the first pod of a set has been bound, if the line says so.
func (w *world) catch(ctx context.Context, l *line) error {
	set := l.option("catching", "")
	if set == "" {
		return nil
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for bound := 0; bound == 0; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		pods, err := w.lister.List(labels.SelectorFromSet(labels.Set{setLabel: set}))
		if err != nil {
			return err
		}
		for _, p := range pods {
			if p.Spec.NodeName != "" {
				bound++
			}
		}
		if bound > 0 {
			w.t.Logf("%d of %d pods of %s are bound when it happens", bound, len(pods), set)
		}
	}
	return nil
}

// lose notes that no scheduler leads from now on, until one says so again.
func (w *world) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lostAt = time.Now()
}

// led reports whether a scheduler leads.
func (w *world) led(ctx context.Context) bool {
	w.mu.Lock()
	lostAt := w.lostAt
	w.mu.Unlock()
	if lostAt.IsZero() {
		return true
	}
	if !w.cluster.leads(ctx, lostAt) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lostAt.Equal(lostAt) {
		w.lostAt = time.Time{}
	}
	return w.lostAt.IsZero()
}

// groupOf is the gang that the pod names, by the label of either form, or the set of one that is not declared.
func groupOf(pod *v1.Pod) string {
	if pod.Annotations[undeclared] == "true" {
		return "set:" + pod.Labels[setLabel]
	}
	if group := pod.Labels[groupLabel]; group != "" {
		return group
	}
	return pod.Labels[oldNameLabel]
}
