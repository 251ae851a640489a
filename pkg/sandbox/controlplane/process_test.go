package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

func TestAFailureHasTheLastWordsOfTheStartThatFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := filepath.Join(dir, "before")
	// The second start logs and runs on.
	cp := &controlPlane{layout: sandbox.Layout(dir), state: sandbox.State{PIDs: map[string]int{}}}
	require.NoError(t, os.MkdirAll(cp.layout.Logs(), 0o700))
	p := &process{name: "c", path: "/bin/sh", controlPlane: cp, args: []string{"-c",
		"if [ -e " + before + " ]; then echo starting again; exec sleep 600; fi; touch " + before +
			"; echo the reason; exit 3"}}
	p.start(t.Context())
	defer p.stop()
	await.Until(t, "the second start", func() bool {
		log, err := os.ReadFile(p.logFile())
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Contains(string(log), "starting again")
	})
	if failure := p.failure(); failure == nil || failure.Error() != "c stopped (exit status 3): the reason" {
		t.Errorf("got %v, want the reason of the first start's end", failure)
	}
}
