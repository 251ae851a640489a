package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTheBarFitsItsLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		offered, total int64
		elapsed        time.Duration
		width          int
		want           string
	}{
		"a wide terminal":            {50, 200, 10 * time.Second, 120, "6 replays [##########..............................] 50 of 200 pods, 5 pods/s, 30s left"},
		"80 columns":                 {50, 200, 10 * time.Second, 79, "6 replays [########........................] 50 of 200 pods, 5 pods/s, 30s left"},
		"no place for a bar":         {50, 200, 10 * time.Second, 55, "6 replays: 50 of 200 pods, 5 pods/s, 30s left"},
		"no place for numbers":       {50, 200, 10 * time.Second, 20, "6 replays: 50 of 20…"},
		"hardly any place":           {50, 200, 10 * time.Second, 1, "…"},
		"none at all":                {50, 200, 10 * time.Second, 0, ""},
		"the beginning":              {0, 0, 0, 79, "6 replays: 0 of 0 pods, 0 pods/s, time left unknown"},
		"more than there were to be": {300, 200, 10 * time.Second, 70, "6 replays [######################] 300 of 200 pods, 30 pods/s, 0s left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := bar("6 replays", test.offered, test.total, test.elapsed, test.width)
			if got != test.want || utf8.RuneCountInString(got) > test.width {
				t.Errorf("got  %q\nwant %q in %d columns", got, test.want, test.width)
			}
		})
	}
}

func TestALineOfATerminalNeverWraps(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	line := &Line{out: &out, width: func() int { return 10 }}
	line.Show("nodes: 1,000,000")
	line.Keep("pods")
	line.Show("a")
	line.Clear()
	want := "\rnodes: 1…" + eraseRest + "\rpods" + eraseRest + "\n\ra" + eraseRest + "\r" + eraseRest
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestWithoutATerminalThereAreWholeLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	line := NewLine(&out)
	long := strings.Repeat("x", 200)
	line.Show("gone")
	line.Keep(long)
	line.Clear()
	if out.String() != long+"\n" {
		t.Errorf("got %q", out.String())
	}
}

func TestFollowingEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	called := make(chan struct{})
	stop := Every(time.Millisecond, func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	<-called
	stop()
	select {
	case <-called:
		t.Error("called after the stop")
	default:
	}
}
