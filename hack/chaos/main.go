// Command chaos does to a local cluster what happens to real ones, while it schedules gangs, shares and preemptions:
// schedulers, API server and etcd are killed, connections are cut, slow and lossy, the leader freezes, etcd is full.
// Every change is checked against what a scheduler promises, and after each fault the cluster has to come to rest with
// nothing lost and nothing leaked:
//
//	go run ./hack/chaos
//	go run ./hack/chaos --only "etcd killed" --seed 17 --times 1
//	go run ./hack/chaos --soak 30m --pods-per-second 50
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/rig"
)

type options struct {
	seed          uint64
	only          string
	times         int
	podsPerSecond float64
	soak          time.Duration
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the first round; each round has the next")
	flag.StringVar(&o.only, "only", "", "do only the faults with this in their names")
	flag.IntVar(&o.times, "times", 0, "rounds of each fault; 0 for those of the full run")
	flag.Float64Var(&o.podsPerSecond, "pods-per-second", 14, "pods that come while there is load")
	flag.DurationVar(&o.soak, "soak", 0,
		"do no fault: put load on the cluster for so long, and see whether the scheduler grows")
	rig.Main("does to a local cluster what happens to real ones, and checks what the scheduler promises.", o.run)
}

// check refuses what cannot be played.
func (o *options) check() error {
	if o.times < 0 {
		return fmt.Errorf("--times %d: must be 0 or more", o.times)
	}
	if o.podsPerSecond < 1 || o.podsPerSecond > 500 {
		return fmt.Errorf("--pods-per-second %v: must be 1 to 500", o.podsPerSecond)
	}
	if o.soak < 0 || o.soak > 0 && o.soak < time.Minute {
		return fmt.Errorf("--soak %s: must be a minute or more", o.soak)
	}
	if len(plan(o)) == 0 {
		return fmt.Errorf("--only %q: no fault has this in its name", o.only)
	}
	return nil
}

// plan lists the disasters of a run, mixed.
func plan(o *options) []disaster {
	var all []disaster
	for _, d := range disasters {
		if strings.Contains(d.name, o.only) {
			all = append(all, slices.Repeat([]disaster{d}, cmp.Or(o.times, d.times))...)
		}
	}
	random := rand.New(rand.NewPCG(o.seed, 4)) //nolint:gosec // a run must come again from its seed
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// run plays everything, and returns what was found until the end or until it broke off. A promise that was not kept is
// an error.
func (o *options) run(ctx context.Context, out io.Writer) (any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	var r report
	if o.soak > 0 {
		err = c.soak(ctx, o, &r, out)
	} else {
		err = c.playAll(ctx, o, &r, out)
	}
	if err != nil {
		err = fmt.Errorf("breaking off: %w", err)
	}
	if err := errors.Join(err, c.close(), r.write(out)); err != nil {
		return r, fmt.Errorf("%w (the logs are in %s)", err, c.dir)
	}
	return r, os.RemoveAll(c.dir)
}

// playAll plays the rounds.
func (c *cluster) playAll(ctx context.Context, o *options, r *report, out io.Writer) error {
	for i, d := range plan(o) {
		round, err := c.play(ctx, d, o.seed+uint64(i), o.podsPerSecond) //nolint:gosec // small
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		r.Rounds = append(r.Rounds, round)
		_, _ = fmt.Fprintf(out,
			"%s %d %s: recovered in %.2f s, drained in %.1f s, %d of %d pods bound, %d evicted, broken: %v\n",
			time.Now().UTC().Format(time.TimeOnly),
			round.Seed, round.Disaster, round.RecoverySeconds, round.DrainSeconds, round.Bound, round.Pods, round.Evicted,
			round.Broken)
	}
	return nil
}

// report is what a run found.
type report struct {
	Rounds  []round  `json:"rounds"`
	Samples []sample `json:"samples,omitempty"`
	Trends  []trend  `json:"trends,omitempty"`
}

// print prints the tables and every promise that was not kept, which is an error.
func (r *report) write(out io.Writer) error {
	var err error
	if len(r.Samples) > 0 {
		err = errors.Join(rig.Table(out, r.Samples), rig.Table(out, r.Trends))
	}
	err = errors.Join(err, rig.Table(out, r.Rounds))
	broken := 0
	for _, round := range r.Rounds {
		for _, what := range round.Broken {
			_, _ = fmt.Fprintf(out, "%s, seed %d: %s\n", round.Disaster, round.Seed, what)
		}
		if len(round.Broken) > 0 {
			broken++
		}
	}
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("a promise was not kept in %d of %d rounds", broken, len(r.Rounds)))
	}
	return err
}
