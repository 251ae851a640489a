package replay

import (
	"context"
	"errors"
	"time"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/schedulerconfig"
)

// ErrInput is matched by the errors of Run about its input, configuration and options.
var ErrInput = errors.New("unusable input")

// inputError is such an error, without a prefix.
type inputError struct{ error }

// Is makes every inputError match ErrInput.
func (e inputError) Is(target error) bool { return target == ErrInput }

// Run replays the input with the configuration. When ctx ends, it stops with the error of ctx.
func Run(ctx context.Context, config *schedulerconfig.Configuration, in Input, options Options) (*replayed.Result,
	error) {
	if err := options.Validate(); err != nil {
		return nil, inputError{err}
	}
	options = options.withDefaults()
	if err := options.setGates(); err != nil {
		return nil, inputError{err}
	}
	profile, err := config.Profile(options.Profile)
	if err != nil {
		return nil, inputError{err}
	}
	if err := config.RefuseExtenders(); err != nil {
		return nil, inputError{err}
	}
	out := &replayed.Result{Input: in.Name, Configuration: config.Name, Profile: profile, Mode: options.Mode,
		Seed:       options.Seed,
		SharesGPUs: config.SharesGPUs(profile), KnowsGangs: config.KnowsGangs(profile)}
	config, silenced := config.WithoutSignals()
	for _, plugin := range silenced {
		out.Notes = append(out.Notes, plugin+
			" was run without what Prometheus would tell it: live signals are neutral in a replay")
	}
	began := time.Now()
	err = simulation.Virtual(options.Start.Add(-lead), func() error {
		return runOnClock(ctx.Err, config, in, options, profile, out)
	})
	if err != nil {
		return nil, err
	}
	out.Timing.Wall = time.Since(began).Seconds()
	out.Timing.PodsPerSecond = float64(out.Pods) / out.Timing.Wall
	return out, nil
}

// lead is the virtual time before the start in which the scheduler reads the cluster. The time that it needs varies.
const lead = time.Minute

func runOnClock(cancelled func() error, config *schedulerconfig.Configuration, in Input, options Options,
	profile string, out *replayed.Result) error {
	c, err := newCluster(in, options, profile, config)
	if err != nil {
		return err
	}
	defer c.world.Stop()
	err = c.world.Start(simulation.Setup{Config: config, Parallelism: simulation.Workers(config, len(c.ledger.order))},
		func() {
			simulation.Pin(c.world, c.ranks(), c.lowest)
			c.failures = recordFailures(c.world, c.trees)
		})
	if errors.Is(err, schedulerconfig.ErrInvalid) {
		return inputError{err}
	}
	if err != nil {
		return err
	}
	time.Sleep(time.Until(options.Start)) //nolint:forbidigo // virtual time
	conduct := &conductor{options: options, gate: newGate(), cluster: c}
	c.world.API.Defer()
	conduct.gate.guard(c.world)
	c.world.Run()
	err = conduct.run(cancelled)
	if err == nil {
		err = c.err
	}
	if err == nil {
		err = c.record.result(out)
		out.Timing.Cycles, out.Timing.CPU = conduct.cycles, conduct.cpu.Seconds()
	}
	c.world.API.Undefer()
	return err
}
