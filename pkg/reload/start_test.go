package reload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// startOf is a process with a new configuration whose start goes on. There is none that worked to go back to, unless a
// test sets one: going back replaces the process of the test.
func startOf(t *testing.T) *Config {
	t.Helper()
	return &Config{
		file: "config.yaml", copyFile: filepath.Join(t.TempDir(), "copy.yaml"), inForce: []byte("new"), resumed: true,
		counts: map[string]int{},
	}
}

func (c *Config) copied(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(c.copyFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

// A scheduler that has worked and ends later, as one that loses its lease, has no wrong configuration.
func TestAnErrorAfterTheStartLeavesTheConfiguration(t *testing.T) {
	t.Parallel()
	c := startOf(t)
	c.lastGood = []byte("old")
	if !c.started(t.Context(), time.Now()) {
		t.Fatal("the start does not count")
	}
	cause := errors.New("lost lease")
	if err := c.Failed(t.Context(), cause); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if c.copied(t) != "new" || c.counts[resultSuccess] != 1 || c.counts[resultFailed] != 0 {
		t.Errorf("the copy is %q, counts are %v; want the new configuration and one success", c.copied(t), c.counts)
	}
}

// The goroutine that follows the file may hear of the start only when it has failed.
func TestAStartThatHasFailedDoesNotWorkAfterwards(t *testing.T) {
	t.Parallel()
	c := startOf(t)
	cause := errors.New("couldn't create leader elector")
	if err := c.Failed(t.Context(), cause); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
	ready := make(chan struct{})
	close(ready)
	c.Follow(t.Context(), saying{}, ready) // returns
	if c.copied(t) != "" || len(c.counts) != 0 {
		t.Errorf("the copy is %q, counts are %v; want neither", c.copied(t), c.counts)
	}
}

// The end of a scheduler that is told to stop says nothing of its configuration.
func TestAStartThatIsStoppedGoesBackToNothing(t *testing.T) {
	t.Parallel()
	c := startOf(t)
	c.lastGood = []byte("old")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cause := errors.New("finished without leader elect")
	if err := c.Failed(ctx, cause); !errors.Is(err, cause) {
		t.Errorf("error %v, want %v", err, cause)
	}
}

func TestOnlyWhatIsTheSameTwiceIsAWholeFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		looks []string
		want  []bool
	}{
		"a file that is there":             {[]string{"a", "a", "a"}, []bool{false, true, true}},
		"an empty file that is written":    {[]string{"", "a", "a"}, []bool{false, false, true}},
		"an empty file that stays":         {[]string{"", ""}, []bool{false, true}},
		"a file that grows":                {[]string{"a", "ab", "abc", "abc"}, []bool{false, false, false, true}},
		"a file that is emptied and grows": {[]string{"a", "a", "", "b", "b"}, []bool{false, true, false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last lastLook
			for i, content := range tc.looks {
				if got := last.same([]byte(content)); got != tc.want[i] {
					t.Errorf("look %d at %q: settled %t, want %t", i+1, content, got, tc.want[i])
				}
			}
		})
	}
}
