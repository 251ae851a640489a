package plan

import (
	"fmt"
	"strings"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/plural"
)

// Shortfall is why a group does not fit: how many of its members find a node, and what keeps the others off the nodes.
type Shortfall struct {
	Group gang.ID
	// Of is the whole minimum, Members how many can be placed or are, Fits how many find a node or have one.
	Of            gang.Minimum
	Members, Fits int
	// Alike is set if all members ask for the same and all are needed: the one entry of Classes is then the whole group.
	Alike bool
	// Classes are those with members that find no node; those that ask for the same are one.
	Classes []ClassShortfall
	// Within is the kind of domain that all have to share, if any.
	Within string
	// Segments says what parts of the group share, if there are such parts, Lacking which part finds no place.
	Segments, Lacking string
	// Nodes are the causes that keep the first of the classes off nodes.
	Nodes obstacle.Nodes
	// words are made once: each of many members is told them.
	words string
}

// ClassShortfall is how many members of a class find a node; each asks for Asks.
type ClassShortfall struct {
	Asks         string
	Wanted, Fits int
}

// NewShortfall returns why the result is not enough for the demand. Asks names what one member of a class asks for.
func NewShortfall(id gang.ID, d gang.Demand, r Result, asks func(class string) string, within string,
	nodes obstacle.Nodes) *Shortfall {
	members := len(d.Members)
	s := &Shortfall{Group: id, Of: d.Minimum, Members: d.Placed + members, Fits: d.Placed + len(r.Assignments),
		Within: within, Segments: r.Segments, Lacking: r.Lacking, Nodes: nodes}
	for _, c := range r.Short {
		s.add(ClassShortfall{Asks: asks(c.Class), Wanted: c.Wanted, Fits: c.Fits})
	}
	s.Alike = len(s.Classes) == 1 && d.Need.Total == members && s.Classes[0].Wanted == members
	s.words = s.say()
	return s
}

// add counts classes that ask for the same together: what else tells them apart, such as a label, is not said.
func (s *Shortfall) add(c ClassShortfall) {
	for i := range s.Classes {
		if s.Classes[i].Asks == c.Asks {
			s.Classes[i].Wanted += c.Wanted
			s.Classes[i].Fits += c.Fits
			return
		}
	}
	s.Classes = append(s.Classes, c)
}

// Kind is that of the nodes.
func (s *Shortfall) Kind() string {
	if len(s.Nodes) == 0 {
		return "gang does not fit"
	}
	return "gang does not fit: " + s.Nodes.Kind()
}

// String says what the group needs, how much of it fits, and what keeps the rest off the nodes.
func (s *Shortfall) String() string { return s.words }

func (s *Shortfall) say() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gang %s ", s.Group)
	within := ""
	if s.Within != "" {
		within = " within one " + s.Within
	}
	if s.Segments != "" {
		within += " in " + s.Segments
	}
	switch foreign := s.Of.Total - s.Members; {
	case s.Alike:
		fmt.Fprintf(&b, "needs %s × %s%s, fits %d", s.Of, s.Classes[0].Asks, within, s.Fits)
	case foreign > 0:
		fmt.Fprintf(&b, "needs %s %s%s, %d of them placed by another scheduler, fits %d", s.Of,
			plural.Noun(s.Of.Total, "member"), within, foreign, s.Fits)
	case s.Of.Total == s.Members:
		fmt.Fprintf(&b, "needs all %s members%s, fits %d", s.Of, within, s.Fits)
	default:
		fmt.Fprintf(&b, "needs at least %s of %s%s, fits %d", s.Of, plural.Of(s.Members, "member"), within, s.Fits)
	}
	if !s.Alike {
		for i, c := range s.Classes {
			sep := " ("
			if i > 0 {
				sep = ", "
			}
			fmt.Fprintf(&b, "%s%d of %d × %s", sep, c.Fits, c.Wanted, c.Asks)
		}
		if len(s.Classes) > 0 {
			b.WriteString(")")
		}
	}
	if more := s.Of.Total - s.Fits; more > 0 {
		fmt.Fprintf(&b, "; %d more %s needed", more, plural.Choose(more, "is", "are"))
	}
	if s.Lacking != "" {
		fmt.Fprintf(&b, "; %s", s.Lacking)
	}
	if len(s.Nodes) > 0 {
		fmt.Fprintf(&b, " (%s)", s.Nodes)
	}
	return b.String()
}
