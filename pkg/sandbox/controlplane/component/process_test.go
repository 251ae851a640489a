package component

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestAFailureHasTheLastWordsOfTheStartThatFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := filepath.Join(dir, "before")
	// The second start logs and runs on.
	p := &Process{Name: "c", Path: "/bin/sh", Logs: dir, Started: func(int) {}, Args: []string{"-c",
		"if [ -e " + before + " ]; then echo starting again; exec sleep 600; fi; touch " + before + "; echo the reason; exit 3"}}
	p.Start(t.Context())
	defer p.Stop()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 4*time.Minute, true, func(context.Context) (bool, error) {
		log, err := os.ReadFile(filepath.Join(dir, "c.log"))
		return strings.Contains(string(log), "starting again"), ignoreMissing(err)
	})
	if err != nil {
		t.Fatalf("waiting for the second start: %v", err)
	}
	if failure := p.Failure(); failure == nil || failure.Error() != "c stopped (exit status 3): the reason" {
		t.Errorf("got %v, want the reason of the first start's end", failure)
	}
}

// ignoreMissing drops the error that a file is not there yet.
func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
