package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/process/informers"
)

// source is a server that is asked once an interval, and what was reported of it.
type source struct {
	client *client
	logger klog.Logger
	// reported is the last trouble in the log.
	reported string
}

// Reader reads what one server knows in the background, into snapshots that do not change. A nil reader, which is a
// source that is not configured, knows nothing.
type Reader[S any] struct {
	source
	// read asks the server and puts what came into the next snapshot, which begins as a copy of the last.
	read     func(ctx context.Context, from *source, next *S) trouble
	snapshot atomic.Pointer[S]
}

func newReader[S any](logger klog.Logger, args *config.Prometheus, first S,
	read func(context.Context, *source, *S) trouble) (*Reader[S], error) {
	c, err := newClient(args)
	if err != nil {
		return nil, err
	}
	registerMetrics()
	r := &Reader[S]{source: source{client: c, logger: logger}, read: read}
	r.snapshot.Store(&first)
	return r, nil
}

// start returns the scheduler's reader for these args, made at the first call and started when the nodes are known: the
// same plugin is made once for each profile, and profiles with the same args need the server asked only once.
func start[S any](ctx context.Context, factory kubeinformers.SharedInformerFactory, args any, server *config.Prometheus,
	known cache.InformerSynced, first S, read func(context.Context, *source, *S) trouble) (*Reader[S], error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("comparing args: %w", err)
	}
	return informers.SharedBy(factory, string(encoded), func() (*Reader[S], error) {
		r, err := newReader(klog.FromContext(ctx), server, first, read)
		if err != nil {
			return nil, err
		}
		go r.run(ctx, known, server.Interval.Duration)
		return r, nil
	})
}

// run runs rounds until ctx ends, once an interval, counted from start to start. The first begins when the nodes are
// known: a round before would find none that a series could be about, and the next is an interval away, in which a GPU
// known to be faulty would be given out.
func (r *Reader[S]) run(ctx context.Context, known cache.InformerSynced, interval time.Duration) {
	defer r.client.close()
	if !cache.WaitForCacheSync(ctx.Done(), known) {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		r.round(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// round publishes what comes. A signal whose query fails keeps what it had.
func (r *Reader[S]) round(ctx context.Context) {
	next := *r.snapshot.Load()
	t := r.read(ctx, &r.source, &next)
	if ctx.Err() != nil {
		// The end of the scheduler is no failure of the server.
		return
	}
	r.snapshot.Store(&next)
	r.report(t)
}

// Snapshot returns what is known now, never nil. It is one atomic load.
func (r *Reader[S]) Snapshot() *S {
	if r == nil {
		return new(S)
	}
	return r.snapshot.Load()
}

// trouble is what is wrong after a round.
type trouble struct {
	failing []string
	// err is the error of the first signal that fails.
	err error
	// uncovered is set if too few of the nodes have a sample that counts.
	uncovered      bool
	covered, nodes int
}

// fails adds a signal whose query brought no usable answer.
func (t *trouble) fails(signal string, err error) {
	if t.failing = append(t.failing, signal); t.err == nil {
		t.err = err
	}
}

// report logs one line if another trouble is there than at the last call.
func (s *source) report(t trouble) {
	failing := strings.Join(t.failing, ",")
	now := failing
	if t.uncovered {
		now += ",uncovered"
	}
	if now == s.reported {
		return
	}
	s.reported = now
	switch {
	case t.err != nil:
		s.logger.Error(t.err,
			"Reading live signals fails; what was read before counts until it is too old, then scheduling goes on without",
			"server", s.client.server, "failing", failing)
	case t.uncovered:
		s.logger.Info("Live signals are off for all nodes because too few GPU nodes have a fresh sample",
			"server", s.client.server, "nodesWithSample", t.covered, "gpuNodes", t.nodes)
	default:
		s.logger.Info("All live signals are read again", "server", s.client.server)
	}
}
