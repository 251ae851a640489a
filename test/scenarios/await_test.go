package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// slacken is a limit with slack.
func (w *world) slacken(limit time.Duration) time.Duration { return limit * time.Duration(w.slack) }

// eventually waits until check returns nil, for as long as limit times slack by the time of the machine.
func (w *world) eventually(ctx context.Context, limit time.Duration, check func() error) error {
	limit = w.slacken(limit)
	began, deadline := time.Now(), w.cluster.now()+limit
	tick := time.NewTicker(lookEvery / 2)
	defer tick.Stop()
	for {
		err := check()
		switch {
		case err == nil:
			return nil
		case w.cluster.now() > deadline:
			return fmt.Errorf("after %s, which took %s on this machine: %w", limit, time.Since(began).Round(lookEvery), err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// throughout checks that check returns nil for the whole time.
func (w *world) throughout(ctx context.Context, d time.Duration, check func() error) error {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(lookEvery / 2)
	defer tick.Stop()
	for {
		if err := check(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-tick.C:
		}
	}
}
