package gangloop

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/waitlist"
)

// answerTime is how long others wait for the plan of a gang that was invited before them and may leave no room to them.
// Most plans take milliseconds.
const answerTime = time.Second

// coming is what gangs are about to take, as of the beginning of a turn of the loop, and what it has invited since. The
// account of free capacity does not show it before their pods are bound.
type coming struct {
	// placed is what plans have given to members.
	placed []placed
	// invited are gangs that have not planned yet.
	invited []*waitlist.Gang
}

// placed is what the plan of a gang has given to its members.
type placed struct {
	to   gang.ID
	kept []*capacity.Kept
}

// foresee looks at what gangs are about to take. If one of them does not take it after all, those are tried again that
// were kept from it.
func (t *tries) foresee(now time.Time) {
	before := t.coming.placed
	t.coming = coming{}
	lands := map[gang.ID]bool{}
	for _, c := range t.ledger.Agenda.Coming() {
		if g := t.list.ByID[c.ID]; g != nil && now.Sub(c.InvitedAt) < answerTime {
			t.coming.invited = append(t.coming.invited, g)
		}
		if len(c.Members) == 0 {
			continue
		}
		lands[c.ID] = true
		to, why := placed{to: c.ID}, dryrun.KeptFor(c.ID).Cause()
		for _, m := range c.Members {
			if pod := t.list.Pod(m.Ref); pod != nil {
				to.kept = append(to.kept, &capacity.Kept{Node: m.Node, To: c.ID, Pod: pod, Why: why})
			}
		}
		t.coming.placed = append(t.coming.placed, to)
	}
	for _, was := range before {
		if v, known := t.ledger.View(was.to); !lands[was.to] && (!known || !v.Met()) {
			for _, id := range t.list.Excluded {
				t.queue.Retry(id, now)
			}
			return
		}
	}
}

// kept returns what the gang may not use of what is free: what is kept for others, and what they are about to take.
func (t *tries) kept(id gang.ID, pods []*v1.Pod) []*capacity.Kept {
	kept := t.holds.Gate.Against(id, pods)
	for _, other := range t.coming.placed {
		if other.to != id {
			kept = append(kept, other.kept...)
		}
	}
	return kept
}

// contested reports whether the gang may start, and what is free may not suffice both for it and for the gangs with its
// shapes that were invited before it. It is looked at again when they have planned.
func (t *tries) contested(g *waitlist.Gang) bool {
	if g == nil || len(t.coming.invited) == 0 || len(g.Levels.Required) > 0 || t.excludes(g) {
		return false
	}
	var both []capacity.Need
	wanted := 0
	for _, need := range g.Shapes {
		all := need.Count
		for _, other := range t.coming.invited {
			for _, their := range other.Shapes {
				if other.ID != g.ID && their.Shape == need.Shape {
					all += their.Count
				}
			}
		}
		if all > need.Count {
			both = append(both, capacity.Need{Shape: need.Shape, Count: all})
			wanted += all
		}
	}
	return wanted > 0 && t.list.Capacity.BestBeside(both, nil, nil, t.kept(g.ID, g.Pods)) < wanted
}
