package history

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/harness/require"
	"berth.dev/berth/test/invariants"
)

func TestAHistoryComesAgainFromItsSeedAndItsFile(t *testing.T) {
	t.Parallel()
	h := Generate(7)
	if diff := cmp.Diff(h, Generate(7)); diff != "" {
		t.Errorf("the same seed gives another history: %s", diff)
	}
	file := filepath.Join(t.TempDir(), "history.yaml")
	require.NoError(t, Write(h, &invariants.Fault{Kind: "kind", Detail: "a line\nand another"}, file))
	read, err := Read(file)
	require.NoError(t, err)
	if diff := cmp.Diff(h, read); diff != "" {
		t.Errorf("the file gives another history: %s", diff)
	}
}

func TestAHistoryIsShortenedToWhatTheFaultNeeds(t *testing.T) {
	t.Parallel()
	h := Generate(3)
	needed := []Step{{Do: CordonNode, Name: "needed"}, {Do: OpenNode, Name: "needed"}}
	h.Steps = append(append([]Step{needed[0]}, h.Steps...), needed[1])
	h.MaxDelayMillis = 50
	whole := h.Duration()
	short := Shorten(h, func(h *History) bool {
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
