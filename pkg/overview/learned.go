package overview

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/runstore"
	"berth.dev/berth/pkg/runtimes"
)

// learnEvery is how often it is read what the scheduler has learned of run times, which it writes every five minutes.
const learnEvery = time.Minute

// maxLimitSeconds is the longest limit of a Job that can be multiplied.
const maxLimitSeconds = 10 * 365 * 24 * 3600

// learned is what is known of run times beside what pods declare.
type learned struct {
	book *runtimes.Book
	// unread says why it is not known, empty if it is.
	unread string
	// limits says after what time Jobs end their pods, of those that do.
	limits map[types.NamespacedName]time.Duration
}

// setLimit notes after what time the Job ends its pods.
func (l *learned) setLimit(job *batchv1.Job) {
	name := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	delete(l.limits, name)
	if seconds := job.Spec.ActiveDeadlineSeconds; seconds != nil && *seconds > 0 {
		l.limits[name] = time.Duration(min(*seconds, maxLimitSeconds)) * time.Second
	}
}

// limitOf returns after what time the Job of the pod ends it, 0 if none does.
func (l *learned) limitOf(pod *v1.Pod) time.Duration {
	owner := podview.ControllerOf(pod)
	if owner == nil || owner.Kind != "Job" {
		return 0
	}
	return l.limits[types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}]
}

// SetRunTimes notes what the scheduler has written of run times, or why that is not known. Nothing written is nothing
// learned.
func (f *feed) SetRunTimes(content []byte, unread string) {
	book := runtimes.NewBook()
	if len(content) > 0 {
		if err := book.UnmarshalBinary(content); err != nil {
			book, unread = runtimes.NewBook(), "what is written is not a book of run times: "+err.Error()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs.book, f.runs.unread = book, unread
}

// FollowRunTimes reads what the scheduler has learned of run times again and again, until ctx ends.
func (w *Watcher) FollowRunTimes(ctx context.Context) {
	ticker := time.NewTicker(learnEvery)
	defer ticker.Stop()
	for {
		w.readRunTimes(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Watcher) readRunTimes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	kept, err := w.client.CoreV1().ConfigMaps(runstore.Namespace).Get(ctx, runstore.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		w.SetRunTimes(kept.BinaryData[runstore.Key], "")
	case apierrors.IsNotFound(err):
		w.SetRunTimes(nil, "")
	case apierrors.IsForbidden(err):
		w.SetRunTimes(nil, command.OneLine(err))
	default: // what was read before still counts
	}
}
