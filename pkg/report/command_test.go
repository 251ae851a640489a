package report

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/pkg/sandbox"
)

// TestReplaysAtOnceGiveWhatTheyGiveInTurn runs the built command, whose replays are processes of their own.
func TestReplaysAtOnceGiveWhatTheyGiveInTurn(t *testing.T) {
	t.Parallel()
	binary, err := sandbox.FindBinary()
	if err != nil {
		t.Skipf("no berth here: %v", err)
	}
	run := func(arguments ...string) (out, said string, err error) {
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"compare", "--nodes", "../replay/testdata/nodes.csv", "--jobs", "../replay/testdata/jobs.csv"}, arguments...)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err = cmd.Run()
		return stdout.String(), stderr.String(), err
	}
	var got [2]map[string]Row
	for i, parallel := range []string{"1", "3"} {
		out, said, err := run("--a", "stock", "--b", "../../manifests/base/scheduler-config.yaml", "--horizon", "1h", "--seeds", "2", "-o", "json", "--parallel", parallel)
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		var c Comparison
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		got[i] = map[string]Row{}
		for _, r := range c.Rows {
			if r.Measured {
				if r.A.Mean <= 0 || r.B.Mean <= 0 {
					t.Errorf("with --parallel %s: %s: %v and %v, want what each took", parallel, r.Label, r.A, r.B)
				}
				continue
			}
			got[i][r.Key] = r
		}
	}
	if diff := cmp.Diff(got[0], got[1], cmpopts.IgnoreUnexported(Row{})); diff != "" {
		t.Errorf("metrics (-in turn +at once):\n%s", diff)
	}
	_, said, err := run("--a", "stock", "--b", "stock", "--profile", "nobody")
	if want := "berth: stock: there is no profile \"nobody\"; it has default-scheduler\n"; err == nil || !strings.HasSuffix(said, want) {
		t.Errorf("with a profile that is not there: error %v, said %q, want %q", err, said, want)
	}
}
