package report

import (
	"fmt"
	"math"
	"strings"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/tables"
)

// sparkWidth is the number of characters of a sparkline where there is room, sparkLabels what is around it, and
// leastSpark the width of one on a terminal that is too narrow for all.
const (
	sparkWidth  = 40
	sparkLabels = 40
	leastSpark  = 10
)

// sparkWidthOn is how many characters fit on a screen.
func sparkWidthOn(screen tables.Screen) int {
	if screen.Width == 0 {
		return sparkWidth
	}
	return max(leastSpark, min(sparkWidth, screen.Width-sparkLabels))
}

var sparkLevels = []rune("▁▂▃▄▅▆▇█")

// spark draws values between 0 and top, one character each.
func spark(values []float64, top float64) string {
	line := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if top > 0 {
			level = int(math.Round(v / top * float64(len(sparkLevels)-1)))
		}
		line[i] = sparkLevels[max(0, min(level, len(sparkLevels)-1))]
	}
	return string(line)
}

// course is a value that is followed through a replay.
type course struct {
	label, unit string
	of          func(replayed.Sample) float64
}

var courses = []course{
	{"GPUs allocated", "%", allocatedPercent},
	{"GPUs stranded", "%", strandedPercent},
	{"Cost of nodes in use", "$/h", dollarsPerHour},
	{"Pods pending", "pods", func(s replayed.Sample) float64 { return float64(s.Pending) }},
}

// sparklines draw how each side went, on one scale for all. What was zero throughout, and what came to its end at once,
// is left out.
func sparklines(screen tables.Screen, mode replayed.Mode, sides ...Side) []string {
	width := sparkWidthOn(screen)
	x, name := atSeconds, "time"
	if mode == replayed.ArrivalOrder {
		x, name = arrivedPercent, "arrived load"
	}
	end := lastX(x, sides...)
	if end == 0 || atOnce(sides[0]) {
		return nil
	}
	var lines []string
	for _, course := range courses {
		var drawn [][]float64
		top := 0.0
		for _, side := range sides {
			values := make([]float64, width)
			for i := range values {
				for _, r := range side.Results {
					values[i] += valueAt(r.Samples, end*float64(i)/float64(width-1), x, course.of) / float64(len(side.Results))
				}
				top = max(top, values[i])
			}
			drawn = append(drawn, values)
		}
		if top == 0 {
			continue
		}
		for i, values := range drawn {
			label, letter := course.label, ""
			if i > 0 {
				label = ""
			}
			if len(drawn) > 1 {
				letter = "  " + string(rune('A'+i))
			}
			lines = append(lines, fmt.Sprintf("%-20s%s %s up to %s %s", label, letter, spark(values, top),
				number(round3(highestOf(values))), course.unit))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	head := "Over " + name + ", from the start to "
	if mode == replayed.ArrivalOrder {
		head += number(round3(end)) + "% of the GPUs asked for:"
	} else {
		head += strings.TrimSpace(tables.Seconds(end)) + ":"
	}
	return append([]string{head}, lines...)
}

// lastX is the end of the x axis.
func lastX(x func(replayed.Sample) float64, sides ...Side) float64 {
	end := 0.0
	for _, side := range sides {
		for _, r := range side.Results {
			if n := len(r.Samples); n > 0 {
				end = math.Max(end, x(r.Samples[n-1]))
			}
		}
	}
	return end
}
