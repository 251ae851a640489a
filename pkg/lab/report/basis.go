package report

import (
	"fmt"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

// basisWords says what the figures of a replay describe.
func basisWords(r *replayed.Result) string {
	switch r.Basis {
	case replayed.TimeMean:
		return fmt.Sprintf("means over the time from %s to %s, %s", tables.Seconds(r.Window.From),
			tables.Seconds(r.Window.To), untilWords[r.Window.Until])
	case replayed.FullLoad:
		return "from the end, except for the allocation: its mean while about 100% of the GPUs are requested"
	default:
		return "from the end"
	}
}

var untilWords = map[replayed.Until]string{
	replayed.LastArrival: "the last arrival",
	replayed.WorkDone:    "when the work is done",
	replayed.Horizon:     "the horizon",
}

// Basis says what the figures of the comparison describe.
func (c *Comparison) Basis() string {
	a, b := basisWords(c.A.Results[0]), basisWords(c.B.Results[0])
	if a == b {
		return "Figures are " + a + "."
	}
	return "Figures of A are " + a + "; of B " + b + "."
}

// sides are notes on shares and gangs that only one configuration supports, which explain differences between the two.
func (c *Comparison) sides() []string {
	var list []string
	a, b := c.A.Results[0], c.B.Results[0]
	// note names the side that does not support the pods, their number, the mean of the GPUs that they hold, and the
	// other side.
	note := func(text string, pods int, what string, onA, onB bool, held func(*replayed.Result) int64) {
		if pods == 0 || onA == onB {
			return
		}
		without, side, other := "A", c.A, "B"
		if onA {
			without, side, other = "B", c.B, "A"
		}
		sum := int64(0)
		for _, r := range side.Results {
			sum += held(r)
		}
		list = append(list, fmt.Sprintf(text, without, plural.Of(pods, what),
			number(round3(gpus(sum)/float64(len(side.Results)))), other))
	}
	note("%s gives a whole GPU to each pod that asks for a share (%s), %s GPUs more than they ask for; %s places shares. "+
		"On both sides a share counts as what it asks for", max(a.SharePods, b.SharePods), "such pod", a.SharesGPUs,
		b.SharesGPUs, func(r *replayed.Result) int64 { return r.HeldMilli - r.IncompleteMilli })
	note("%s places the pods of a gang one by one (%s), and incomplete gangs hold %s GPUs without working; %s starts "+
		"them together. On both sides an incomplete gang counts as not allocated", max(a.Gangs, b.Gangs), "gang",
		a.KnowsGangs, b.KnowsGangs, func(r *replayed.Result) int64 { return r.IncompleteMilli })
	return list
}
