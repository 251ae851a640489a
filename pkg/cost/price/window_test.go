package price

import (
	"testing"
	"time"
	_ "time/tzdata" // the test must not depend on the machine's zones

	"pgregory.net/rapid"

	"berth.dev/berth/test/harness/require"
)

var everyDay = []time.Weekday{0, 1, 2, 3, 4, 5, 6}

func window(t require.TB, days []time.Weekday, from, to, zone string) *Window {
	place, err := time.LoadLocation(zone)
	require.NoError(t, err)
	f, err := ParseClock(from)
	require.NoError(t, err)
	u, err := ParseClock(to)
	require.NoError(t, err)
	w, err := NewWindow(days, f, u, place)
	require.NoError(t, err)
	return w
}

func TestWindow(t *testing.T) {
	t.Parallel()
	const berlin, utc = "Europe/Berlin", "UTC"
	weekend := []time.Weekday{time.Saturday, time.Sunday}
	for name, tc := range map[string]struct {
		days           []time.Weekday
		from, to, zone string
		at, opens      string // equal when it is open
	}{
		"open at its first minute": {everyDay, "22:00", "06:00", utc, "2026-11-18T22:00:00Z",
			"2026-11-18T22:00:00Z"},
		"open behind midnight": {everyDay, "22:00", "06:00", utc, "2026-11-18T05:59:59Z",
			"2026-11-18T05:59:59Z"},
		"closed at its end": {everyDay, "22:00", "06:00", utc, "2026-11-18T06:00:00Z",
			"2026-11-18T22:00:00Z"},
		"a window of the whole day": {weekend, "00:00", "24:00", utc, "2026-11-18T10:00:00Z",
			"2026-11-21T00:00:00Z"},
		"the day is the one on which it opens": {[]time.Weekday{time.Friday}, "22:00", "06:00", utc,
			"2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z"},
		"and not the one before": {[]time.Weekday{time.Friday}, "22:00", "06:00", utc,
			"2026-11-20T03:00:00Z", "2026-11-20T22:00:00Z"},
		"closed for six days": {[]time.Weekday{time.Monday}, "08:00", "09:00", utc,
			"2026-11-16T09:00:00Z", "2026-11-23T08:00:00Z"},
		"in the time of its place": {everyDay, "22:00", "06:00", berlin, "2026-07-01T19:59:00Z",
			"2026-07-01T20:00:00Z"},
		"which is another in winter": {everyDay, "22:00", "06:00", berlin, "2026-12-01T20:30:00Z",
			"2026-12-01T21:00:00Z"},
		"an hour that is skipped in spring opens late": {everyDay, "02:30", "04:00", berlin, "2026-03-29T00:00:00Z",
			"2026-03-29T01:00:00Z"},
		"a window that is skipped waits for another day": {everyDay, "02:10", "02:50", berlin, "2026-03-28T23:00:00Z",
			"2026-03-30T00:10:00Z"},
		"an hour that is repeated in autumn is open": {everyDay, "02:30", "02:50", berlin, "2026-10-25T00:40:00Z",
			"2026-10-25T00:40:00Z"},
		"and open again the second time": {everyDay, "02:30", "02:50", berlin, "2026-10-25T00:55:00Z",
			"2026-10-25T01:30:00Z"},
		"until it ends by the clock": {everyDay, "02:30", "02:50", berlin, "2026-10-25T01:50:00Z",
			"2026-10-26T01:30:00Z"},
		"midnight that is skipped opens an hour later": {everyDay, "00:00", "05:00", "America/Santiago",
			"2026-09-06T03:30:00Z", "2026-09-06T04:00:00Z"},
		"a place half an hour off": {everyDay, "22:00", "06:00", "Asia/Kolkata",
			"2026-11-18T16:00:00Z", "2026-11-18T16:30:00Z"},
		"a place that changes its clocks by half an hour": {everyDay, "02:15", "03:00", "Australia/Lord_Howe",
			"2026-10-03T15:20:00Z", "2026-10-03T15:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := window(t, tc.days, tc.from, tc.to, tc.zone)
			at, err := time.Parse(time.RFC3339, tc.at)
			require.NoError(t, err)
			if open := w.Open(at); open != (tc.at == tc.opens) {
				t.Errorf("open at %s: %t", at.In(w.place), open)
			}
			next, ok := w.NextOpen(at)
			if got := next.UTC().Format(time.RFC3339); !ok || got != tc.opens {
				t.Errorf("opens at %s (%t), want %s", got, ok, tc.opens)
			}
		})
	}
}

// NextOpen is checked against a walk through the minutes.
func TestNextOpenIsTheFirstOpenMinute(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe",
		"Asia/Kathmandu"}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		place, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		require.NoError(t, err)
		days := rapid.SliceOfNDistinct(rapid.SampledFrom(everyDay), 1, 7, rapid.ID).Draw(t, "days")
		from := rapid.IntRange(0, minutesPerDay-1).Draw(t, "from")
		to := rapid.IntRange(0, minutesPerDay).Filter(func(m int) bool { return m != from }).Draw(t, "to")
		w, err := NewWindow(days, from, to, place)
		require.NoError(t, err)
		at := begin.Add(time.Duration(rapid.IntRange(0, 365*minutesPerDay).Draw(t, "minute")) * time.Minute)
		got, ok := w.NextOpen(at)
		want := at
		for !w.Open(want) && want.Sub(at) < 14*24*time.Hour {
			want = want.Add(time.Minute)
		}
		if !ok || !got.Equal(want) {
			t.Fatalf("from %s the window opens at %s (%t), want %s", at.In(place), got, ok, want.In(place))
		}
	})
}

func TestWindowsThatNeverOpenAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		days     []time.Weekday
		from, to int
	}{
		"no days":                 {nil, 0, 60},
		"no length":               {everyDay, 60, 60},
		"from the end of the day": {everyDay, minutesPerDay, 60},
	} {
		if w, err := NewWindow(tc.days, tc.from, tc.to, time.UTC); err == nil {
			t.Errorf("%s: accepted as %+v", name, w)
		}
	}
}

func TestParseClock(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"00:00": 0, "06:30": 390, "23:59": 1439, "24:00": 1440} {
		if got, err := ParseClock(in); err != nil || got != want {
			t.Errorf("ParseClock(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "6:30", "06:3", "24:01", "25:00", "12:60", "-1:00", "06:30:00", "6 am", "06.30",
		"٠٦:٣٠"} {
		if got, err := ParseClock(in); err == nil {
			t.Errorf("ParseClock(%q) = %d, want an error", in, got)
		}
	}
}
