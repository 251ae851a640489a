package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpstreamsHarnessPreparesTheScheduler(t *testing.T) {
	t.Parallel()
	upstream, err := findUpstream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(upstream, filepath.FromSlash(starter)))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := withCall(text)
	if err != nil {
		t.Fatal(err)
	}
	made, call := strings.Index(string(changed), "scheduler.New("), strings.Index(string(changed),
		"installed.Prepare(sched)")
	if runs := strings.Index(string(changed), "sched.Run("); made < 0 || call < made || runs < call {
		t.Errorf("the scheduler is made at byte %d, prepared at %d and run at %d; want them in this order", made, call, runs)
	}
	if _, err := withCall([]byte("package util\n\nimport (\n)\n")); err == nil ||
		!strings.Contains(err.Error(), "0 times, want once") {
		t.Errorf("code that makes no scheduler gives the error %v", err)
	}
}
