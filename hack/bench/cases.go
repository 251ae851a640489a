package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"berth.dev/berth/hack/bench/guard"
	"berth.dev/berth/hack/bench/packing"
	"berth.dev/berth/hack/bench/rig"
)

// benchCase is one thing that can be measured. The tags of its rows are the columns of its table.
type benchCase struct {
	name  string
	shows string
	// needs is what it takes besides cores with no other work, and flags are those of "run" that it reads.
	needs, flags string
	// figure is held against what is expected. Other cases are run, and print a table of their own.
	figure *guard.Figure
	run    func(ctx context.Context, out io.Writer, o *options) (rows any, err error)
}

const (
	// guards is what the cases of make bench-guard need.
	guards = "seconds (guards)"

	packingFlags = "--policies --families --load --seeds"
	openbFolder  = "minutes, --trace FOLDER of the openb trace"
	jobsFile     = "minutes, --trace FILE with the columns submit_s, duration_s, gpus"
)

// cases are all that there are.
func cases() []benchCase {
	all := append(ofFigures(guard.Figures, guards), ofFigures(guard.OnRequest, "minutes")...)
	for i := range guard.FieldLoads {
		load := &guard.FieldLoads[i]
		all = append(all, benchCase{name: load.Name, shows: load.Shows, needs: "minutes", flags: "--profiles",
			run: func(ctx context.Context, out io.Writer, o *options) (any, error) {
				return load.Measure(ctx, out, o.profiles)
			}})
	}
	return append(all, []benchCase{
		{name: guard.Scale, shows: "start, heap and CPU for a pod of both schedulers, with ten pods on each node",
			needs: "5 GiB and two minutes for 15,000 nodes", flags: "--nodes --profiles",
			run: func(ctx context.Context, out io.Writer, o *options) (any, error) {
				return guard.MeasureScale(ctx, out, cmp.Or(o.nodes, 15_000), o.profiles)
			}},
		{name: guard.LargeReplay, shows: "a replay of six hours, with ten pods for each node",
			needs: "minutes for 1,500 nodes", flags: "--nodes --profiles",
			run: func(ctx context.Context, out io.Writer, o *options) (any, error) {
				return guard.MeasureReplay(ctx, out, cmp.Or(o.nodes, 1500), o.profiles)
			}},
		{name: "packing", shows: "rules of placement on 190 families of work, on clusters of 400 GPUs",
			needs: "minutes", flags: packingFlags, run: packed(packing.Families)},
		{name: "packing-held-out", shows: "the same on 50 families by which only the weight of opening was chosen",
			needs: "minutes", flags: packingFlags, run: packed(packing.HeldOut)},
		{name: "packing-hard", shows: "the same on 22 families in which a simple rule may win",
			needs: "a minute", flags: packingFlags, run: packed(packing.Hard)},
		{name: "packing-openb", shows: "the same on five variants of the openb trace",
			needs: openbFolder, flags: packingFlags + " --trace", run: packOpenb},
		{name: "cost", shows: "price of the nodes in use when the openb trace has filled a part of the cluster",
			needs: openbFolder, flags: "--trace --config --seeds", run: cost},
		{name: "starttimes", shows: "how long gangs and others wait, with and without declared run times",
			needs: jobsFile, flags: "--trace --config --nodes", run: startTimes},
	}...)
}

func ofFigures(figures []guard.Figure, needs string) []benchCase {
	var all []benchCase
	for i := range figures {
		f := &figures[i]
		all = append(all, benchCase{name: f.Name, shows: f.Shows, needs: needs, flags: "--update --profiles", figure: f})
	}
	return all
}

func packed(families func() []packing.Family) func(context.Context, io.Writer, *options) (any, error) {
	return func(ctx context.Context, out io.Writer, o *options) (any, error) {
		return pack(ctx, out, o, families())
	}
}

func packOpenb(ctx context.Context, out io.Writer, o *options) (any, error) {
	all, err := packing.Openb(o.trace)
	if err != nil {
		return nil, err
	}
	return pack(ctx, out, o, all)
}

func pack(ctx context.Context, out io.Writer, o *options, all []packing.Family) (any, error) {
	r := packing.Run{Load: o.load, Families: o.families, Policies: o.policies,
		Seeds: cmp.Or(o.seeds, packing.DefaultSeeds)}
	return r.Measure(ctx, out, all)
}

// list prints the cases.
func list(out io.Writer) error {
	type line struct {
		Name  string `row:"case"`
		Shows string `row:"shows"`
		Needs string `row:"needs"`
		Flags string `row:"flags"`
	}
	var lines []line
	for _, c := range cases() {
		lines = append(lines, line{c.name, c.shows, c.needs, c.flags})
	}
	if err := rig.Table(out, lines); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out,
		"kube-scheduler's own benchmark is a module of its own: go run -C hack/bench/perf . --help"); err != nil {
		return fmt.Errorf("printing the cases: %w", err)
	}
	return nil
}
