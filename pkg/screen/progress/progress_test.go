package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestTheBarFitsItsLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		done, total int64
		perSecond   float64
		width       int
		want        string
	}{
		"a wide terminal": {50, 200, 5, 120,
			"6 replays [##########..............................] 50 of 200 pods, 5.0 pods/s, 30s left"},
		"80 columns": {50, 200, 5, 79,
			"6 replays [#######.......................] 50 of 200 pods, 5.0 pods/s, 30s left"},
		"no place for a bar":   {50, 200, 5, 55, "6 replays: 50 of 200 pods, 5.0 pods/s, 30s left"},
		"no place for numbers": {50, 200, 5, 20, "6 replays: 50 of 20…"},
		"hardly any place":     {50, 200, 5, 1, "…"},
		"none at all":          {50, 200, 5, 0, ""},
		"the beginning":        {0, 0, 0, 79, "6 replays: 0 of 0 pods, 0.0 pods/s, time left unknown"},
		"more than there were to be": {300, 200, 30, 70,
			"6 replays [#######################] 300 of 200 pods, 30 pods/s, ending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := bar("6 replays", test.done, test.total, test.perSecond, test.width)
			if got != test.want || utf8.RuneCountInString(got) > test.width {
				t.Errorf("got  %q\nwant %q in %d columns", got, test.want, test.width)
			}
		})
	}
}

// TestThePaceIsThatOfRecentTime has 100 pods in the first ten seconds, and then one each ten seconds.
func TestThePaceIsThatOfRecentTime(t *testing.T) {
	t.Parallel()
	p := &pace{}
	if got := p.at(10*time.Second, 100); got != 10 {
		t.Errorf("%v pods a second at the beginning, want 10", got)
	}
	got := 0.0
	for i := 2; i <= 60; i++ {
		got = p.at(time.Duration(i)*10*time.Second, int64(98+i))
	}
	if got < 0.09 || got > 0.11 {
		t.Errorf("%v pods a second after ten minutes, want 0.1", got)
	}
	for i := 61; i <= 70; i++ {
		got = p.at(time.Duration(i)*10*time.Second, 158)
	}
	if got != 0 {
		t.Errorf("%v pods a second while none is done, want 0", got)
	}
	if len(p.times) > 10 {
		t.Errorf("%d moments are kept", len(p.times))
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
	stop := every(time.Millisecond, func() {
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
