package eviction

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWhenVictimsHaveHadTheirNotice(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	const most = 5 * time.Minute
	for _, tc := range []struct {
		name    string
		notices []Notice
		first   time.Time
		want    time.Duration
	}{
		{"at once where none wants any", []Notice{{}, {}}, time.Time{}, 0},
		{"its length after now where it has yet to be given", []Notice{{Length: time.Minute}}, time.Time{}, time.Minute},
		{"its length after it was given", []Notice{{Length: 2 * time.Minute, Given: at(-time.Minute)}}, at(-time.Minute),
			time.Minute},
		{"now if that is over", []Notice{{Length: time.Minute, Given: at(-2 * time.Minute)}}, at(-2 * time.Minute), 0},
		{"as soon as the work is saved",
			[]Notice{{Length: time.Minute, Given: at(-10 * time.Second), Saved: at(-time.Second)}},
			at(-10 * time.Second), 0},
		{"a checkpoint from before the notice does not end it",
			[]Notice{{Length: time.Minute, Given: at(-10 * time.Second), Saved: at(-time.Hour)}}, at(-10 * time.Second),
			50 * time.Second},
		{"all wait for the last", []Notice{{Length: time.Minute}, {}, {Length: 2 * time.Minute}}, time.Time{},
			2 * time.Minute},
		{"others that are chosen later have what is left of the most",
			[]Notice{{Length: 3 * time.Minute}}, at(-4 * time.Minute), time.Minute},
		{"and none if nothing is left", []Notice{{Length: 3 * time.Minute}}, at(-time.Hour), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := NoticesEnd(tc.notices, tc.first, t0, most).Sub(t0); got != tc.want {
				t.Errorf("the notice ends after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNoticeIsBounded(t *testing.T) {
	t.Parallel()
	year := Work{Started: t0, Notice: 365 * day}
	if n := year.NoticeOf(time.Time{}, t0.Add(time.Hour), Limits{Notice: time.Minute}); n.Length != time.Minute {
		t.Fatalf("a year of notice counts as %s, want a minute", n.Length)
	}
	duration := rapid.Int64Range(int64(-day), int64(day))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) time.Time { return t0.Add(time.Duration(duration.Draw(t, label))) }
		var all []Notice
		for range rapid.IntRange(0, 4).Draw(t, "victims") {
			n := Notice{Length: time.Duration(duration.Draw(t, "length")), Given: draw("given"), Saved: draw("saved")}
			if rapid.Bool().Draw(t, "has yet to be given") {
				n.Given = time.Time{}
			}
			all = append(all, n)
		}
		first, now := draw("first"), draw("now")
		end := NoticesEnd(all, first, now, time.Minute)
		if end.Before(now) || end.After(now) && end.After(first.Add(time.Minute)) {
			t.Fatalf("the notice ends %s after now and %s after the first", end.Sub(now), end.Sub(first))
		}
	})
}
