package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// pool shares the readers of one process: the same plugin is made once for each profile, and profiles with the same
// args in the same scheduler need the server asked only once.
type pool[R any] struct {
	mu      sync.Mutex
	running map[poolKey]*pooled[R]
}

type poolKey struct {
	scope any
	args  string
}

type pooled[R any] struct {
	reader R
	users  int
	stop   context.CancelFunc
}

// acquire returns the running reader of scope and args, or starts one. It runs until the context of every acquirer has
// ended. start gets a context with the values of the first one's.
func (p *pool[R]) acquire(ctx context.Context, scope, args any, start func(context.Context) (R, error)) (R, error) {
	var none R
	encoded, err := json.Marshal(args)
	if err != nil {
		return none, fmt.Errorf("comparing args: %w", err)
	}
	key := poolKey{scope: scope, args: string(encoded)}
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, ok := p.running[key]
	if !ok {
		runContext, stop := context.WithCancel(context.WithoutCancel(ctx))
		reader, err := start(runContext)
		if err != nil {
			stop()
			return none, err
		}
		entry = &pooled[R]{reader: reader, stop: stop}
		if p.running == nil {
			p.running = map[poolKey]*pooled[R]{}
		}
		p.running[key] = entry
	}
	entry.users++
	context.AfterFunc(ctx, func() { p.release(key, entry) })
	return entry.reader, nil
}

func (p *pool[R]) release(key poolKey, entry *pooled[R]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if entry.users--; entry.users == 0 {
		entry.stop()
		delete(p.running, key)
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
