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
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/hack/bench/rig"
)

type options struct {
	seed          uint64
	only          string
	times         int
	podsPerSecond float64
	json          string
	soak          time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	os.Exit(code)
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the first round; each round has the next")
	flags.StringVar(&o.only, "only", "", "do only the faults with this in their names")
	flags.IntVar(&o.times, "times", 0, "rounds of each fault; 0 for those of the full run")
	flags.Float64Var(&o.podsPerSecond, "pods-per-second", 14, "pods that come while there is load")
	flags.DurationVar(&o.soak, "soak", 0,
		"do no fault: put load on the cluster for so long, and see whether the scheduler grows")
	flags.StringVar(&o.json, "json", "", "write the report to this file, too")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.times < 0 {
		return o, fmt.Errorf("--times %d: must be 0 or more", o.times)
	}
	if o.podsPerSecond < 1 || o.podsPerSecond > 500 {
		return o, fmt.Errorf("--pods-per-second %v: must be 1 to 500", o.podsPerSecond)
	}
	if o.soak < 0 || o.soak > 0 && o.soak < time.Minute {
		return o, fmt.Errorf("--soak %s: must be a minute or more", o.soak)
	}
	if len(plan(o)) == 0 {
		return o, fmt.Errorf("--only %q: no fault has this in its name", o.only)
	}
	return o, nil
}

// plan lists the disasters of a run, mixed.
func plan(o options) []disaster {
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

// run returns 0 when every promise was kept, and 1 otherwise.
func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return 2, err
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 2, fmt.Errorf("reading the load of the machine: %w", err)
	}
	c, err := startCluster(ctx, o)
	if err != nil {
		return 2, err
	}
	r := &report{Command: strings.Join(append([]string{"chaos"}, args...), " "), Began: time.Now().UTC(),
		PodsPerSecond: o.podsPerSecond}
	r.LoadBefore, _, _ = strings.Cut(string(load), " ")
	if err = measured(r, func() error {
		if o.soak > 0 {
			return c.soak(ctx, o, r, out)
		}
		return c.playAll(ctx, o, r, out)
	}); err != nil {
		// What was found until then is reported all the same.
		err = fmt.Errorf("breaking off: %w", err)
	}
	r.Lines = sum(r.Rounds)
	if err := errors.Join(err, c.close(), r.print(out, false), writeJSON(r, o.json)); err != nil {
		return 2, fmt.Errorf("%w (the logs are in %s)", err, c.dir)
	}
	if slices.ContainsFunc(r.Rounds, func(r *round) bool { return len(r.Broken) > 0 }) {
		_, _ = fmt.Fprintln(out, "the logs of the schedulers are in", c.dir)
		return 1, nil
	}
	return 0, os.RemoveAll(c.dir)
}

// measured does something and says how long it took and how busy the machine was meanwhile.
func measured(r *report, do func() error) error {
	before, err := rig.MachineCPU()
	if err != nil {
		return err
	}
	done := do()
	after, err := rig.MachineCPU()
	took := time.Since(r.Began)
	r.Took, r.BusyCores = took.Round(time.Second).String(), hundredths((after-before).Seconds()/took.Seconds())
	return errors.Join(done, err)
}

// playAll plays the rounds.
func (c *cluster) playAll(ctx context.Context, o options, r *report, out io.Writer) error {
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

func writeJSON(r *report, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return errors.Join(r.print(file, true), file.Close())
}
