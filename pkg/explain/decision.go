package explain

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/decisions"
)

// Past explains why the scheduler chose the node, for the first of the pods with a recorded decision. Without one it
// returns an error.
func Past(list *decisions.List, pods ...decisions.Subject) (*Explanation, error) {
	for _, pod := range pods {
		if decision := list.Of(pod); decision != nil {
			return decided(decision), nil
		}
	}
	return nil, fmt.Errorf(
		"the scheduler remembers no decision about %s: it keeps the last %d since its start, and only the replica that "+
			"leads decides; the condition PodScheduled of a pod says why it has no node", about(pods), list.Kept)
}

// about names the pods of the question.
func about(pods []decisions.Subject) string {
	if len(pods) > 1 {
		return fmt.Sprintf("pod %s and %s", pods[0], plural.Of(len(pods)-1, "other"))
	}
	return "pod " + pods[0].String()
}

// decided explains a recorded decision.
func decided(d *decisions.Decision) *Explanation {
	e := &Explanation{
		Pod: PodName(d.Pod), State: "bound", BoundTo: d.Node, Winner: d.Node, Profile: d.Profile,
		Configuration: "the scheduler when it decided", Nodes: make([]Node, len(d.Nodes)),
	}
	at := d.Time.UTC().Format(time.RFC3339) // as kubectl prints it
	for i := range d.Nodes {
		e.Nodes[i] = nodeThen(&d.Nodes[i])
	}
	if e.findRunnerUp(); e.RunnerUp != nil {
		// A change of a weight may let a node win that is not recorded.
		e.RunnerUp.Changes = nil
	}
	switch {
	case d.ChosenBy == decisions.Batch:
		e.Verdict = fmt.Sprintf("%s was taken over from an equal pod, for which it was the best or the next one.", d.Node)
	case d.ChosenBy != "":
		e.Verdict = fmt.Sprintf("%s left the pod no other node than %s.", d.ChosenBy, d.Node)
	case d.Compared == 0:
		e.Verdict = fmt.Sprintf("%s was the only node that was found to fit.", d.Node)
	default:
		e.Verdict = e.sentence()
		e.Notes = append(e.Notes, fmt.Sprintf("%s compared; the chosen one and the next best are remembered",
			plural.Of(d.Compared, "node")+" "+plural.Choose(d.Compared, "was", "were")))
	}
	e.Verdict += fmt.Sprintf(" It was given the node at %s.", at)
	return e
}

// nodeThen is a node with its recorded scores.
func nodeThen(c *decisions.Candidate) Node {
	n := Node{Name: c.Name, Total: c.Total, Scores: make([]Score, len(c.Scores))}
	for i, s := range c.Scores {
		n.Scores[i] = Score{Plugin: s.Plugin, Raw: s.Raw, Normalised: s.Weighted / max(s.Weight, 1), Weight: s.Weight,
			Weighted: s.Weighted}
		if len(s.Terms) > 0 {
			cost := process.Cost{Unit: s.Unit}
			for _, t := range s.Terms {
				cost.Terms = append(cost.Terms, process.Term(t))
			}
			n.Scores[i].Cost = costOf(cost)
		}
	}
	return n
}
