package explain

import (
	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/plural"
)

// growth says by what steps a gang grows, and how many it has taken.
func (p *page) growth(g *Gang) {
	if g.GrowsBy == "" {
		return
	}
	what, taken := "members", ""
	if g.Groups != "" {
		what = "groups"
	}
	if g.StepsTaken > 0 {
		taken = ": it has taken " + plural.Of(g.StepsTaken, "step")
	}
	switch by := g.GrowsBy; {
	case by == steps.Double:
		p.line("beyond that, it runs with twice as many %s, four times, eight times and so on%s", what, taken)
	case by.Named():
		p.line("beyond that, it grows by %s at a time%s", by, taken)
	default:
		p.line("beyond that, it grows by %s %s at a time%s", by, what, taken)
	}
}
