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
	mean := func(side Side, of func(*replayed.Result) int64) string {
		sum := int64(0)
		for _, r := range side.Results {
			sum += of(r)
		}
		return number(round3(gpus(sum) / float64(len(side.Results))))
	}
	if n := max(a.SharePods, b.SharePods); n > 0 && a.SharesGPUs != b.SharesGPUs {
		whole, side, other := "A", c.A, "B"
		if a.SharesGPUs {
			whole, side, other = "B", c.B, "A"
		}
		held := mean(side, func(r *replayed.Result) int64 { return r.HeldMilli - r.IncompleteMilli })
		list = append(list, fmt.Sprintf(
			"%s gives a whole GPU to each pod that asks for a share (%s), %s GPUs more than they ask for; %s places shares. "+
				"On both sides a share counts as what it asks for", whole, plural.Of(n, "such pod"), held, other))
	}
	if n := max(a.Gangs, b.Gangs); n > 0 && a.KnowsGangs != b.KnowsGangs {
		single, side, other := "A", c.A, "B"
		if a.KnowsGangs {
			single, side, other = "B", c.B, "A"
		}
		held := mean(side, func(r *replayed.Result) int64 { return r.IncompleteMilli })
		list = append(list, fmt.Sprintf(
			"%s places the pods of a gang one by one (%s), and incomplete gangs hold %s GPUs without working; %s starts them "+
				"together. "+
				"On both sides an incomplete gang counts as not allocated", single, plural.Of(n, "gang"), held, other))
	}
	return list
}
