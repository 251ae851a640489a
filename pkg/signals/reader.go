package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/informers"
)

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

// everyOnceKnown is every, from when the nodes are known: a round before would find none that a series could be about,
// and the next is an interval away, in which a GPU known to be faulty would be given out.
func everyOnceKnown(ctx context.Context, known cache.InformerSynced, interval time.Duration,
	round func(context.Context)) {
	if cache.WaitForCacheSync(ctx.Done(), known) {
		every(ctx, interval, round)
	}
}

// every runs round at once and then once an interval, counted from start to start, until ctx ends.
func every(ctx context.Context, interval time.Duration, round func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		round(ctx)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
