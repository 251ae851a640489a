package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/informers"
)

// source is a server that is asked once an interval, and what was reported of it.
type source struct {
	client   *client
	interval time.Duration
	logger   klog.Logger
	// reported is the last trouble in the log.
	reported string
}

func newSource(logger klog.Logger, args *config.Prometheus) (source, error) {
	c, err := newClient(args)
	if err != nil {
		return source{}, err
	}
	registerMetrics()
	return source{client: c, interval: args.Interval.Duration, logger: logger}, nil
}

// share returns the scheduler's reader for these args, started at the first call: the same plugin is made once for each
// profile, and profiles with the same args need the server asked only once.
func share[R any](factory kubeinformers.SharedInformerFactory, args any, start func() (R, error)) (R, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		var none R
		return none, fmt.Errorf("comparing args: %w", err)
	}
	return informers.SharedBy(factory, string(encoded), start)
}

// begin runs rounds in the background until ctx ends, once an interval, counted from start to start. The first begins
// when the nodes are known: a round before would find none that a series could be about, and the next is an interval
// away, in which a GPU known to be faulty would be given out.
func (s *source) begin(ctx context.Context, known cache.InformerSynced, round func(context.Context)) {
	go func() {
		defer s.client.close()
		if !cache.WaitForCacheSync(ctx.Done(), known) {
			return
		}
		ticker := time.NewTicker(s.interval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			round(ctx)
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
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
