package main

import (
	"io"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ args, want string }{
		"no case":                        {"", "name at least one case, or --guard"},
		"an unknown case":                {"gang", `there is no case "gang"`},
		"a flag that the case ignores":   {"gangs --load 0.9", "--load: none of the chosen cases reads it"},
		"a flag that neither case reads": {"cost gangs --trace x --policies ours", "--policies: none of the chosen cases reads it"},
		"a trace that is not given":      {"cost", "cost needs minutes, --trace FOLDER"},
		"seeds below nothing":            {"packing --seeds -1", "--nodes, --seeds: less than 0"},
		"a rule that there is not":       {"packing --policies magic", `packing: --policies: "magic" is none of`},
		"a file that is not there":       {"starttimes --trace nowhere.csv", "starttimes: reading the trace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := newCommand()
			cmd.SetArgs(append([]string{"run"}, strings.Fields(tc.args)...))
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestEachCaseHasANameAndReadsFlagsThatThereAre(t *testing.T) {
	t.Parallel()
	flags, names := newRun().Flags(), map[string]bool{}
	for _, c := range cases() {
		if names[c.name] || c.shows == "" || c.needs == "" || (c.run == nil) == (c.figure == nil) {
			t.Errorf("%s: its name comes twice, or it lacks something", c.name)
		}
		names[c.name] = true
		for _, flag := range strings.Fields(c.flags) {
			if flags.Lookup(strings.TrimPrefix(flag, "--")) == nil {
				t.Errorf("%s: there is no flag %s", c.name, flag)
			}
		}
	}
	var out strings.Builder
	require.NoError(t, list(&out))
	for name := range names {
		assert.Contains(t, out.String(), " "+name+" ")
	}
}

func TestWhatGuardsIsChosenIfNothingIsNamed(t *testing.T) {
	t.Parallel()
	all, err := choose(nil, true)
	if err != nil || len(all) < 14 || all[0].name != "identical" {
		t.Errorf("error %v, chosen %v", err, all)
	}
	some, err := choose([]string{"start-gated", "gangs"}, true)
	if err != nil || len(some) != 2 || some[0].name != "start-gated" || some[1].name != "gangs" {
		t.Errorf("error %v, chosen %v", err, some)
	}
}
