package plan

import (
	"fmt"
	"slices"
	"strings"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/plural"
)

// Shortfall is why a group does not fit: how many of its members find a node, and what keeps the others off the nodes.
type Shortfall struct {
	// message is made once, because many members of the group report it.
	message string
	nodes   obstacle.Nodes
}

// NewShortfall returns why the result is not enough for the demand. asks describes what one member of a class asks for.
// within is the level of the domain that all members share, if any, and nodes are the causes that keep the first class
// that is short off the nodes.
func NewShortfall(id gang.ID, d gang.Demand, r Result, asks func(class string) string, within string,
	nodes obstacle.Nodes) *Shortfall {
	if within != "" {
		within = " within one " + within
	}
	if r.Segments != "" {
		within += " in " + r.Segments
	}
	fits, short := d.Placed+len(r.Assignments), byAsk(r.Short, asks)
	var b strings.Builder
	fmt.Fprintf(&b, "gang %s needs ", id)
	describeNeed(&b, d, short, within)
	fmt.Fprintf(&b, ", fits %d", fits)
	if !uniform(d, short) {
		for i, c := range short {
			sep := " ("
			if i > 0 {
				sep = ", "
			}
			fmt.Fprintf(&b, "%s%d of %d × %s", sep, c.Fits, c.Wanted, c.Class)
		}
		if len(short) > 0 {
			b.WriteString(")")
		}
	}
	if more := d.Minimum.Total - fits; more > 0 {
		fmt.Fprintf(&b, "; %d more %s needed", more, plural.Choose(more, "is", "are"))
	}
	if r.Lacking != "" {
		fmt.Fprintf(&b, "; %s", r.Lacking)
	}
	if len(nodes) > 0 {
		fmt.Fprintf(&b, " (%s)", nodes)
	}
	return &Shortfall{message: b.String(), nodes: nodes}
}

// byAsk names classes by what their members ask for, and merges those that ask for the same: what else tells them
// apart, such as a label, is not in the message.
func byAsk(short []Shortage, asks func(class string) string) []Shortage {
	var merged []Shortage
	for _, c := range short {
		c.Class = asks(c.Class)
		at := slices.IndexFunc(merged, func(m Shortage) bool { return m.Class == c.Class })
		if at < 0 {
			merged = append(merged, c)
			continue
		}
		merged[at].Wanted += c.Wanted
		merged[at].Fits += c.Fits
	}
	return merged
}

// uniform reports whether all members ask for the same and all are needed, so that the one class is the whole group.
func uniform(d gang.Demand, short []Shortage) bool {
	return len(short) == 1 && d.Need.Total == len(d.Members) && short[0].Wanted == len(d.Members)
}

// describeNeed writes how many members the group needs, of those that exist here or are placed by another scheduler.
func describeNeed(b *strings.Builder, d gang.Demand, short []Shortage, within string) {
	of, members := d.Minimum, d.Placed+len(d.Members)
	switch foreign := of.Total - members; {
	case uniform(d, short):
		fmt.Fprintf(b, "%s × %s%s", of, short[0].Class, within)
	case foreign > 0:
		fmt.Fprintf(b, "%s %s%s, %d of them placed by another scheduler", of, plural.Noun(of.Total, "member"), within,
			foreign)
	case of.Total == members:
		fmt.Fprintf(b, "all %s members%s", of, within)
	default:
		fmt.Fprintf(b, "at least %s of %s%s", of, plural.Of(members, "member"), within)
	}
}

// Kind is that of the nodes.
func (s *Shortfall) Kind() string {
	if len(s.nodes) == 0 {
		return "gang does not fit"
	}
	return "gang does not fit: " + s.nodes.Kind()
}

// String says what the group needs, how much of it fits, and what keeps the rest off the nodes.
func (s *Shortfall) String() string { return s.message }
