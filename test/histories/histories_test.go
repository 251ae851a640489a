package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

const shipped = "../../manifests/base/scheduler-config.yaml"

// Virtual clocks of one process run one after another.
func TestTheSchedulerLivesThroughRandomHistories(t *testing.T) { //nolint:paralleltest // see above
	configuration, err := schedulerconfig.Load(shipped)
	require.NoError(t, err)
	for seed := range uint64(12) {
		if err := live(history.Generate(seed), configuration, false); err != nil {
			t.Errorf("history %d: %v", seed, err)
		}
	}
}

// Each of these has shown a fault once.
func TestFaultsOfThePastDoNotComeBack(t *testing.T) { //nolint:paralleltest // see above
	configuration, err := schedulerconfig.Load(shipped)
	require.NoError(t, err)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		h, err := history.Read(file)
		require.NoError(t, err)
		if err := live(h, configuration, false); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A configuration without Coscheduling starts gangs in part, which shows that a history can fail.
func TestASchedulerWithoutGangsIsFoundOut(t *testing.T) { //nolint:paralleltest // see above
	configuration, err := schedulerconfig.Load(schedulerconfig.Stock)
	require.NoError(t, err)
	configuration.Component.Profiles[0].SchedulerName = history.DefaultProfile
	h := &history.History{Nodes: []history.Node{{Name: "n", CPUs: 2, MemGiB: 8}}, Steps: []history.Step{
		{Do: history.CreateGang, Gang: &history.Gang{Name: "g", MinMember: 2}},
		{Do: history.CreatePod, Pod: &history.Pod{Name: "a", Gang: "g", MilliCPU: 1500}},
		{Do: history.CreatePod, Pod: &history.Pod{Name: "b", Gang: "g", MilliCPU: 1500}},
	}}
	fault, ok := faultOf(live(h, configuration, false))
	if !ok || fault.Kind != invariants.StartedInPart {
		t.Errorf("fault %v, want %q", fault, invariants.StartedInPart)
	}
}

//nolint:paralleltest // virtual clocks of one process run one after another
func TestMoreEvictionsThanNeededAreAFault(t *testing.T) {
	configuration, err := schedulerconfig.Load(shipped)
	require.NoError(t, err)
	for most, want := range []string{wasteful, ""} {
		h := &history.History{MostEvictions: &most, Nodes: []history.Node{{Name: "n", CPUs: 2, MemGiB: 8}},
			Steps: []history.Step{
				{Do: history.CreatePod, Pod: &history.Pod{Name: "a", MilliCPU: 1500, EndsSeconds: 1, LateSeconds: 20}},
				{Do: history.CreatePod, Pod: &history.Pod{Name: "b", MilliCPU: 1500, Priority: 100},
					After: metav1.Duration{Duration: 10 * time.Second}},
			}}
		got := ""
		if err := live(h, configuration, false); err != nil {
			fault, ok := faultOf(err)
			if !ok {
				t.Fatal(err)
			}
			got = fault.Kind
		}
		if got != want {
			t.Errorf("one eviction, and %d are enough: fault %q, want %q", most, got, want)
		}
	}
}

// A comment that changes beside the place of a defect is enough for its patch not to apply.
func TestTheDefectsCanBePutIn(t *testing.T) {
	t.Parallel()
	patches, err := filepath.Glob("mutants/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("%d patches: %v", len(patches), err)
	}
	for _, patch := range patches {
		apply := exec.CommandContext(t.Context(), "git", "apply", "--check", "test/histories/"+patch)
		apply.Dir = "../.."
		if out, err := apply.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", patch, err, out)
		}
	}
}

func TestAWrongCommandLineNamesItsFault(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"seeds that are none":      {"--seeds", "many"},
		"seeds in the wrong order": {"--seeds", "9-1"},
		"a file that is not there": {"--file", "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if code, err := run(t.Context(), args, t.Output()); code != 2 || err == nil {
				t.Errorf("exit status %d and error %v", code, err)
			}
		})
	}
}

func TestLostRequestsAreNoticedLate(t *testing.T) {
	t.Parallel()
	w := newWeather(&history.History{LostPercent: 100, MaxDelayMillis: 10})
	if w.delay(1<<63) >= 10*time.Millisecond {
		t.Error("a delay is longer than the longest")
	}
	w.calm.Store(true)
	if w.Event() != 0 {
		t.Error("an event is late in calm weather")
	}
}
