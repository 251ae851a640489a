package nvidiasmi

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi/nvidiasmitest"
)

func testdataPath(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheToolIsAskedForGPUsSlicesAndLinks(t *testing.T) {
	t.Parallel()
	tool := New(nvidiasmitest.Program(t, `case "$*" in
"--query-gpu=index,uuid,name,memory.total,mig.mode.current,remapped_rows.failure,gpu_recovery_action --format=csv,noheader,nounits") cat `+testdataPath(t, "gpus-mig.csv")+`;;
"-L") cat `+testdataPath(t, "list-mig.txt")+`;;
"topo -m") cat `+testdataPath(t, "topo-2-sockets-pcie.txt")+`;;
*) echo unexpected "$*"; exit 1;;
esac`), time.Minute)
	gpus, err := tool.GPUs(t.Context())
	if err != nil || len(gpus) != 2 || !gpus[0].MIG {
		t.Errorf("GPUs %v, error %v", gpus, err)
	}
	slices, err := tool.Slices(t.Context())
	if err != nil || len(slices) != 2 {
		t.Errorf("slices %v, error %v", slices, err)
	}
	pairs, err := tool.Topology(t.Context())
	if err != nil || len(pairs) != 28 {
		t.Errorf("%d pairs, error %v", len(pairs), err)
	}
}

func TestAnOldDriverIsAskedForWhatItKnows(t *testing.T) {
	t.Parallel()
	for unknown, answer := range map[string]string{"*recovery*": "gpus-8-a100.csv", "*remapped*": "gpus-old-driver.csv"} {
		tool := New(nvidiasmitest.Program(t, `case "$*" in
`+unknown+`) echo 'Field "one" is not a valid field to query.'; exit 2;;
*) cat `+testdataPath(t, answer)+`;;
esac`), time.Minute)
		gpus, err := tool.GPUs(t.Context())
		if err != nil || len(gpus) < 2 {
			t.Errorf("without %s: GPUs %v, error %v", unknown, gpus, err)
		}
	}
}

func TestAMachineWithoutGPUsHasNone(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"0", "6"} {
		gpus, err := New(nvidiasmitest.Program(t, "echo No devices were found; exit "+status), time.Minute).GPUs(t.Context())
		if err != nil || gpus != nil {
			t.Errorf("with exit status %s: GPUs %v, error %v", status, gpus, err)
		}
	}
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script  string
		timeout time.Duration
		want    string
	}{
		"the driver is not loaded":  {"echo 'NVIDIA-SMI has failed'; exit 9", time.Minute, `exit status 9: "NVIDIA-SMI has failed"`},
		"it hangs":                  {"exec sleep 600", 200 * time.Millisecond, "no answer within 200ms"},
		"it hangs and leaves a son": {"sleep 600", 200 * time.Millisecond, "no answer within 200ms"},
		"it prints without end":     {"exec cat /dev/zero", time.Minute, "more than 1048576 bytes"},
		"it prints nothing":         {"exit 0", time.Minute, "an empty answer"},
		"it prints garbage":         {"echo '\x01\x02'", time.Minute, "want 4, 6 or 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := New(nvidiasmitest.Program(t, tc.script), tc.timeout)
			tool.endsWithin = time.Minute // the machine may stall
			_, err := tool.GPUs(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if hangs := strings.HasPrefix(tc.want, "no answer"); errors.Is(err, ErrHangs) != hangs {
				t.Errorf("error %v says that the driver hangs: %v, want %v", err, !hangs, hangs)
			}
		})
	}
}

func TestNoSecondCommandIsStartedBesideOneThatHangs(t *testing.T) {
	t.Parallel()
	tool := New(nvidiasmitest.Program(t, "echo No devices were found"), 100*time.Millisecond)
	<-tool.turn // as while a process waits in the driver, which no signal reaches
	if _, err := tool.GPUs(t.Context()); !errors.Is(err, errStuck) || !errors.Is(err, ErrHangs) {
		t.Errorf("error %v, want %v", err, errStuck)
	}
	tool.turn <- struct{}{}
	tool.timeout = time.Minute
	if gpus, err := tool.GPUs(t.Context()); len(gpus) != 0 || err != nil {
		t.Errorf("after it ended: GPUs %v, error %v", gpus, err)
	}
}

// After a stall of the machine the answer and the end of the time are seen together.
func TestAnAnswerThatIsThereIsTakenHoweverLate(t *testing.T) {
	t.Parallel()
	over := make(chan time.Time)
	close(over)
	if _, answered := await(make(chan answer), over); answered {
		t.Error("there is an answer without a command")
	}
	for range 100 {
		done := make(chan answer, 1)
		done <- answer{text: "late"}
		if got, answered := await(done, over); !answered || got.text != "late" {
			t.Fatalf("answer %q, answered: %t; want the late one", got.text, answered)
		}
	}
}

func TestAMissingToolIsToldApartFromOneThatFails(t *testing.T) {
	t.Parallel()
	if _, err := New(filepath.Join(t.TempDir(), "nvidia-smi"), time.Minute).GPUs(t.Context()); !errors.Is(err, ErrAbsent) {
		t.Errorf("error %v, want %v", err, ErrAbsent)
	}
}
