package price

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// FuzzParseClock reads times of day: what is read is within the day and is written as it was.
func FuzzParseClock(f *testing.F) {
	for _, s := range []string{"00:00", "24:00", "23:59", "24:01", "7:30", "07:3", "-1:00", "22:00\n", "２２:00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		minutes, err := ParseClock(s)
		if err != nil {
			if !strings.Contains(err.Error(), AllowedClock) {
				t.Fatalf("the error does not say what is allowed: %v", err)
			}
			return
		}
		if again := fmt.Sprintf("%02d:%02d", minutes/60, minutes%60); again != s || minutes < 0 || minutes > minutesPerDay {
			t.Fatalf("%q is read as %d minutes, which is %s", s, minutes, again)
		}
	})
}

// FuzzWindow asks windows in any zone at any time when they open next, and holds the answer against a look at every
// minute.
func FuzzWindow(f *testing.F) {
	f.Add(byte(0b0111110), uint16(1320), uint16(360), "Europe/Berlin", int64(1774746000))
	f.Add(byte(0b1), uint16(0), uint16(1440), "Pacific/Apia", int64(1325239200))
	f.Add(byte(0b1111111), uint16(120), uint16(121), "America/St_Johns", int64(1772955000))
	f.Fuzz(func(t *testing.T, days byte, from, to uint16, zone string, at int64) {
		place, err := time.LoadLocation(zone)
		if err != nil || at < 0 || at > 1<<33 || from > minutesPerDay || to > minutesPerDay {
			t.Skip()
		}
		var week []time.Weekday
		for d := range time.Weekday(7) {
			if days>>d&1 != 0 {
				week = append(week, d)
			}
		}
		w, err := NewWindow(week, int(from), int(to), place)
		if err != nil {
			return
		}
		now := time.Unix(at, 0)
		next, ok := w.NextOpen(now)
		if ok && (next.Before(now) || !w.Open(next)) {
			t.Fatalf("from %s it opens next at %s: open %t", now, next, w.Open(next))
		}
		until := now.AddDate(0, 0, 14)
		if ok && next.Before(until) {
			until = next
		}
		for minute := now.Truncate(time.Minute).Add(time.Minute); minute.Before(until); minute = minute.Add(time.Minute) {
			if w.Open(minute) {
				t.Fatalf("from %s it opens next at %s, %t, and is open at %s", now, next, ok, minute)
			}
		}
	})
}
