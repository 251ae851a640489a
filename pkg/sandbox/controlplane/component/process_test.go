package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestAFailureHasTheLastWordsOfTheStartThatFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := filepath.Join(dir, "before")
	// The second start logs and runs on.
	p := &Process{Name: "c", Path: "/bin/sh", Logs: dir, Started: func(int) {}, Args: []string{"-c",
		"if [ -e " + before + " ]; then echo starting again; exec sleep 600; fi; touch " + before +
			"; echo the reason; exit 3"}}
	p.Start(t.Context())
	defer p.Stop()
	await.Until(t, "the second start", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "c.log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Contains(string(log), "starting again")
	})
	if failure := p.Failure(); failure == nil || failure.Error() != "c stopped (exit status 3): the reason" {
		t.Errorf("got %v, want the reason of the first start's end", failure)
	}
}
