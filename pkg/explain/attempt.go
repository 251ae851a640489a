package explain

import (
	"fmt"
	"strings"
	"time"

	"berth.dev/berth/pkg/decisions"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/tables"
)

// whatDecided is where the configuration was read of an explanation of the past.
const whatDecided = "the scheduler when it decided"

// undecided explains why the scheduler gave a pod no node, by its attempts, the latest first.
func undecided(attempts []decisions.Attempt) *Explanation {
	last := &attempts[0].Failure
	verdict := "found no node at " + when(last.Last)
	if last.Times > 1 {
		verdict += fmt.Sprintf(", for the same reasons as in %s since %s", plural.Of(last.Times-1, "earlier attempt"),
			when(last.First))
	}
	return &Explanation{
		Pod: PodName(attempts[0].Pod), State: "pending", Profile: attempts[0].Profile, Configuration: whatDecided,
		Attempts: failures(attempts),
		Why:      failure(last), Verdict: verdict,
	}
}

// failures are the attempts without the pod, which is the same for all.
func failures(attempts []decisions.Attempt) []decisions.Failure {
	list := make([]decisions.Failure, len(attempts))
	for i := range attempts {
		list[i] = attempts[i].Failure
	}
	return list
}

// when is a time of the past, as kubectl prints it.
func when(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// failure says in a sentence why an attempt failed.
func failure(a *decisions.Failure) string {
	var text string
	switch {
	case a.Node != "":
		text = fmt.Sprintf("%s was chosen, and the pod could not be bound to it: %s", a.Node, said(a))
	case len(a.Rejected) == 0, ofThePod(a):
		text = "It was given no node: " + said(a)
	default:
		count := map[string]int{}
		for i := range a.Rejected {
			r := &a.Rejected[i]
			count[inWords(&Rejection{Plugin: r.Plugin, Reasons: r.Reasons})] += r.Nodes
		}
		text = fmt.Sprintf("No node fitted: of %s, %s", plural.Of(a.Nodes, "node"), counted(count))
	}
	if a.Nominated != "" {
		text += fmt.Sprintf("; pods were evicted for it from %s", a.Nominated)
	}
	return strings.TrimRight(text, ".") + "."
}

// ofThePod says that the attempt ended before any node was looked at: the reason is the pod's, and the same for all
// nodes.
func ofThePod(a *decisions.Failure) bool {
	return len(a.Rejected) == 1 && len(a.Rejected[0].Examples) == 0
}

// said is what was said of the pod, or of the one node that had been chosen.
func said(a *decisions.Failure) string {
	if len(a.Rejected) != 1 {
		return a.Message
	}
	return fmt.Sprintf("%s (%s)", strings.Join(a.Rejected[0].Reasons, ", "), a.Rejected[0].Plugin)
}

// attempts has a row for each reason of each attempt, the latest attempt first.
func (p *page) attempts(attempts []decisions.Failure) {
	t := tables.New(p.screen, tables.Column{Name: "attempt"}, tables.Column{Name: "times", Number: true},
		tables.Column{Name: "since", Extra: true}, tables.Column{Name: "nodes", Number: true},
		tables.Column{Name: "rejected by"},
		tables.Column{Name: "because"}, tables.Column{Name: "which", Extra: true})
	for i := range attempts {
		a := &attempts[i]
		row := func(first bool, nodes any, plugin, because, which string) {
			if first {
				t.Row(when(a.Last), a.Times, when(a.First), nodes, plugin, because, which)
			} else {
				t.Row("", "", "", nodes, plugin, because, which)
			}
		}
		if len(a.Rejected) == 0 {
			row(true, "", "", a.Message, a.Node)
		}
		for j := range a.Rejected {
			r := &a.Rejected[j]
			which := strings.Join(r.Examples, " ")
			if r.Nodes > len(r.Examples) && len(r.Examples) > 0 {
				which += " …"
			}
			var nodes any = r.Nodes
			if r.Nodes == 0 {
				nodes = ""
			}
			row(j == 0, nodes, p.screen.Paint(tables.Red, r.Plugin), strings.Join(r.Reasons, "; "), which)
		}
	}
	p.WriteString("\n" + t.String())
}
