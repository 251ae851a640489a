package price

import (
	"errors"
	"fmt"
	"time"
)

// Window is a span of hours of the day, on some days of the week, by the clock on the wall of one place. It does not
// change once made.
type Window struct {
	days     [7]bool // by time.Weekday, of the day on which the window opens
	from, to int     // minutes since midnight; to may be less than from, then the window closes on the next day
	place    *time.Location
}

const minutesPerDay = 24 * 60

// AllowedClock says what ParseClock accepts, for messages to users.
const AllowedClock = `a time of day from "00:00" to "24:00"`

// ParseClock reads a time of day as minutes since midnight; "24:00" is the end of the day.
func ParseClock(s string) (int, error) {
	if s == "24:00" {
		return minutesPerDay, nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil || len(s) != len("15:04") {
		return 0, fmt.Errorf("parsing time of day %q: want %s", s, AllowedClock)
	}
	return t.Hour()*60 + t.Minute(), nil
}

// NewWindow makes a window from minutes since midnight. One that would never open is an error.
func NewWindow(days []time.Weekday, from, to int, place *time.Location) (*Window, error) {
	if len(days) == 0 {
		return nil, errors.New("the window never opens: it has no days")
	}
	if from == to || from == minutesPerDay {
		return nil, errors.New(`the window never opens: it has no length (all day is from "00:00" to "24:00")`)
	}
	w := &Window{from: from, to: to, place: place}
	for _, d := range days {
		w.days[d] = true
	}
	return w, nil
}

// Open says whether the window is open at an instant. The clock on the wall decides: an hour that a change of clocks
// repeats is in the window both times, one that it skips never comes.
func (w *Window) Open(t time.Time) bool {
	t = t.In(w.place)
	minute := t.Hour()*60 + t.Minute()
	today, yesterday := w.days[t.Weekday()], w.days[(t.Weekday()+6)%7]
	if w.from < w.to {
		return today && minute >= w.from && minute < w.to
	}
	return today && minute >= w.from || yesterday && minute < w.to
}

// NextOpen returns the first instant from t on at which the window is open. It returns false if there is none within
// two weeks, which takes a clock that skips the window's hours every time.
func (w *Window) NextOpen(t time.Time) (time.Time, bool) {
	for at := t.In(w.place); at.Before(t.AddDate(0, 0, 15)); at = w.next(at) {
		if w.Open(at) {
			return at, true
		}
	}
	return time.Time{}, false
}

// next returns the first instant after one at which a closed window may open: the clock on the wall comes to the hour
// of opening, or is set.
func (w *Window) next(after time.Time) time.Time {
	minutes := (w.from-after.Hour()*60-after.Minute()+minutesPerDay-1)%minutesPerDay + 1
	since := time.Duration(after.Second())*time.Second + time.Duration(after.Nanosecond())
	opens := after.Add(time.Duration(minutes)*time.Minute - since)
	if _, set := after.ZoneBounds(); !set.IsZero() && set.Before(opens) {
		return set
	}
	return opens
}
