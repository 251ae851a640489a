package tables

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Seconds writes a number of seconds in suitable units: 340ms, 2.5s, 12m30s, 1h40m, 2d3h.
func Seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return "unknown"
	case s < 0:
		return "-" + Seconds(-s)
	case s > math.MaxInt64/float64(time.Second):
		return "forever"
	}
	return Duration(time.Duration(math.Round(s * float64(time.Second))))
}

// Duration writes a duration in its two largest units.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0s"
	case d < 100*time.Microsecond:
		return "<0.1ms"
	case d < 10*time.Millisecond:
		return decimal(d.Round(100*time.Microsecond), time.Millisecond, "ms")
	case d < time.Second-500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond)/time.Millisecond)
	case d < 10*time.Second-50*time.Millisecond:
		return decimal(d.Round(100*time.Millisecond), time.Second, "s")
	case d < time.Minute-500*time.Millisecond:
		return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
	case d < time.Hour-500*time.Millisecond:
		return two(d.Round(time.Second), time.Minute, "m", time.Second, "s")
	case d < day-30*time.Second:
		return two(d.Round(time.Minute), time.Hour, "h", time.Minute, "m")
	default:
		return two(d.Round(time.Hour), day, "d", time.Hour, "h")
	}
}

// decimal writes one decimal, unless it is 0.
func decimal(d, unit time.Duration, name string) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(d)/float64(unit)), ".0") + name
}

func two(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}
