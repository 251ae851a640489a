package overview

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/runstore"
	"berth.dev/berth/pkg/runtimes"
)

// learnEvery is how often it is read what the scheduler has learned of run times, which it writes every five minutes.
const learnEvery = time.Minute

// learned is what is known of run times beside what pods declare.
type learned struct {
	book *runtimes.Book
	// unread says why it is not known, empty if it is.
	unread string
}

func newLearned() learned { return learned{book: runtimes.NewBook()} }

// SetRunTimes notes what the scheduler has written of run times, or why that is not known. Nothing written is nothing
// learned.
func (b *Book) SetRunTimes(content []byte, unread string) {
	next := newLearned()
	if next.unread = unread; len(content) > 0 {
		if err := next.book.UnmarshalBinary(content); err != nil {
			next = learned{runtimes.NewBook(), "what is written is not a book of run times: " + err.Error()}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs = next
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
