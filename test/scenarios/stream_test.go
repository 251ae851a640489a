package scenarios_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// doStream creates a pod of a set every so often; each ends a while after it was bound, by the time of the machine,
// until the script ends or says stop. With limit no more than that number of pods exist at a time.
func (w *world) doStream(ctx context.Context, l *line) error {
	every, err := l.duration("every", 200*time.Millisecond)
	if err != nil {
		return err
	}
	life, err := l.duration("life", time.Second)
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(l.option("limit", "1000"))
	if err != nil {
		return err
	}
	namespace, set := w.locate(l.arg(0))
	if err := w.namespace(ctx, namespace); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	w.mu.Lock()
	w.streams[set] = stop
	w.mu.Unlock()
	w.background.Go(func() {
		defer stop()
		if err := w.flow(ctx, namespace, set, every, life, limit, l); err != nil && ctx.Err() == nil {
			w.t.Errorf("stream %s: %v", set, err)
		}
	})
	return nil
}

func (w *world) flow(ctx context.Context, namespace, set string, every, life time.Duration, limit int, l *line) error {
	arrival := time.NewTicker(every)
	defer arrival.Stop()
	departure := time.NewTicker(lookEvery)
	defer departure.Stop()
	boundSince := map[*v1.Pod]time.Duration{}
	known := map[string]*v1.Pod{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-arrival.C:
			if len(w.set(set)) < limit {
				if err := w.createPod(ctx, namespace, "", set, l); err != nil {
					return err
				}
			}
		case <-departure.C:
			now := w.cluster.now()
			for _, p := range w.set(set) {
				if p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
					continue
				}
				if known[p.Name] == nil {
					known[p.Name], boundSince[p] = p, now
				}
			}
			for p, since := range boundSince {
				if now-since < life {
					continue
				}
				delete(boundSince, p)
				w.forget(p)
				if err := w.client.CoreV1().Pods(namespace).Delete(ctx, p.Name,
					metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil && !apierrors.IsNotFound(err) {
					return fmt.Errorf("ending pod %s: %w", p.Name, err)
				}
			}
		}
	}
}

func (w *world) doStop(_ context.Context, l *line) error {
	_, set := w.locate(l.arg(0))
	w.mu.Lock()
	stop := w.streams[set]
	w.mu.Unlock()
	if stop == nil {
		return fmt.Errorf("there is no stream %s", set)
	}
	stop()
	return nil
}
