package scripts_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/sandbox"
)

// metric is an entry of a comparison, without what is measured.
type metric struct {
	Metric           string
	Measured         bool
	A, B, Difference map[string]float64
}

// TestReplaysAtOnceGiveWhatTheyGiveInTurn runs a command whose replays are processes of their own.
func TestReplaysAtOnceGiveWhatTheyGiveInTurn(t *testing.T) {
	t.Parallel()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) (out, said string, err error) {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary,
			append([]string{"compare", "--nodes", "../../../pkg/replay/testdata/nodes.csv",
				"--jobs", "../../../pkg/replay/testdata/jobs.csv"}, arguments...)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		return stdout.String(), stderr.String(), err
	}
	var got [2][]metric
	for i, parallel := range []string{"1", "3"} {
		out, said, err := run("--a", "stock", "--b", "../../../manifests/base/scheduler-config.yaml", "--horizon", "1h",
			"--seeds", "2", "-o", "json", "--parallel", parallel)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		var c struct{ Metrics []metric }
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		for _, m := range c.Metrics {
			if !m.Measured {
				got[i] = append(got[i], m)
			} else if m.A["mean"] <= 0 || m.B["mean"] <= 0 {
				t.Errorf("with --parallel %s: %s: %v and %v, want what each took", parallel, m.Metric, m.A, m.B)
			}
		}
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" || len(got[0]) < 10 {
		t.Errorf("%d metrics (-in turn +at once):\n%s", len(got[0]), diff)
	}
	_, said, err := run("--a", "stock", "--b", "stock", "--profile", "nobody")
	if want := "berth: stock: there is no profile \"nobody\"; it has default-scheduler\n"; err == nil ||
		!strings.HasSuffix(said, want) {
		t.Errorf("with a profile that is not there: error %v, said %q, want %q", err, said, want)
	}
}
