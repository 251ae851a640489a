package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/hack/invariants"
	"berth.dev/berth/pkg/schedulerconfig"
)

const shipped = "../../manifests/base/scheduler-config.yaml"

// Virtual clocks of one process run one after another.
func TestTheSchedulerLivesThroughRandomHistories(t *testing.T) { //nolint:paralleltest // see above
	configuration, err := schedulerconfig.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		if err := live(generate(seed), configuration, false); err != nil {
			t.Errorf("history %d: %v", seed, err)
		}
	}
}

// Each of these has shown a fault once.
func TestFaultsOfThePastDoNotComeBack(t *testing.T) { //nolint:paralleltest // see above
	configuration, err := schedulerconfig.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		h, err := readHistory(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := live(h, configuration, false); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A configuration without Coscheduling starts gangs in part, which shows that a history can fail.
func TestASchedulerWithoutGangsIsFoundOut(t *testing.T) { //nolint:paralleltest // see above
	configuration, err := schedulerconfig.Load(schedulerconfig.Stock)
	if err != nil {
		t.Fatal(err)
	}
	configuration.Component.Profiles[0].SchedulerName = profile
	h := &History{Nodes: []Node{{Name: "n", CPUs: 2, MemGiB: 8}}, Steps: []Step{
		{Do: createGang, Gang: &Gang{Name: "g", MinMember: 2}},
		{Do: createPod, Pod: &Pod{Name: "a", Gang: "g", MilliCPU: 1500}},
		{Do: createPod, Pod: &Pod{Name: "b", Gang: "g", MilliCPU: 1500}},
	}}
	fault, ok := faultOf(live(h, configuration, false))
	if !ok || fault.Kind != invariants.StartedInPart {
		t.Errorf("fault %v, want %q", fault, invariants.StartedInPart)
	}
}

func TestMoreEvictionsThanNeededAreAFault(t *testing.T) { //nolint:paralleltest // virtual clocks of one process run one after another
	configuration, err := schedulerconfig.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range []string{wasteful, ""} {
		h := &History{MostEvictions: &most, Nodes: []Node{{Name: "n", CPUs: 2, MemGiB: 8}}, Steps: []Step{
			{Do: createPod, Pod: &Pod{Name: "a", MilliCPU: 1500, EndsSeconds: 1, LateSeconds: 20}},
			{Do: createPod, Pod: &Pod{Name: "b", MilliCPU: 1500, Priority: 100}, After: metav1.Duration{Duration: time.Second}},
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
		apply := exec.CommandContext(t.Context(), "git", "apply", "--check", "hack/histories/"+patch)
		apply.Dir = "../.."
		if out, err := apply.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", patch, err, out)
		}
	}
}

func TestAHistoryComesAgainFromItsSeedAndItsFile(t *testing.T) {
	t.Parallel()
	h := generate(7)
	if diff := cmp.Diff(h, generate(7)); diff != "" {
		t.Errorf("the same seed gives another history: %s", diff)
	}
	file := filepath.Join(t.TempDir(), "history.yaml")
	if err := writeHistory(h, &invariants.Fault{Kind: "kind", Detail: "a line\nand another"}, file); err != nil {
		t.Fatal(err)
	}
	read, err := readHistory(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, read); diff != "" {
		t.Errorf("the file gives another history: %s", diff)
	}
}

func TestAHistoryIsShortenedToWhatTheFaultNeeds(t *testing.T) {
	t.Parallel()
	h := generate(3)
	needed := []Step{{Do: cordonNode, Name: "needed"}, {Do: openNode, Name: "needed"}}
	h.Steps = append(append([]Step{needed[0]}, h.Steps...), needed[1])
	h.MaxDelayMillis = 50
	whole := h.Duration()
	short := shorten(h, func(h *History) bool {
		n := 0
		for _, s := range h.Steps {
			if s.Name == "needed" {
				n++
			}
		}
		return n == 2
	}, func() bool { return false })
	if len(short.Steps) != 2 || len(short.Nodes) != 0 || short.MaxDelayMillis != 0 {
		t.Errorf("%d steps, %d nodes and delays of %d ms are left", len(short.Steps), len(short.Nodes), short.MaxDelayMillis)
	}
	if took := short.Duration(); took+time.Hour < whole || took > whole {
		t.Errorf("the shorter history takes %s, the whole one %s", took, whole)
	}
}

func TestAWrongCommandLineNamesItsFault(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"seeds that are none":           {"--seeds", "many"},
		"seeds in the wrong order":      {"--seeds", "9-1"},
		"no worker":                     {"--workers", "0"},
		"a file that is not there":      {"--file", "none.yaml", "--config", shipped},
		"no configuration of that name": {"--child", "--config", "none.yaml"},
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
	w := newWeather(&History{LostPercent: 100, MaxDelayMillis: 10})
	if w.delay(1<<63) >= 10*time.Millisecond {
		t.Error("a delay is longer than the longest")
	}
	w.calm.Store(true)
	if w.Event() != 0 {
		t.Error("an event is late in calm weather")
	}
}
