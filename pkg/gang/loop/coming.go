package loop

import (
	"time"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
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
	invited []*waiting.Gang
}

// placed is what the plan of a gang has given to its members.
type placed struct {
	to   gang.ID
	kept []*capacity.Kept
}

// foresee looks at what gangs are about to take. If one of them does not take it after all, those are tried again that
// were kept from it.
func (l *Loop) foresee(now time.Time) {
	before := l.coming.placed
	l.coming = coming{}
	lands := map[gang.ID]bool{}
	for _, c := range l.Ledger.Agenda.Coming() {
		if g := l.List.ByID[c.ID]; g != nil && now.Sub(c.InvitedAt) < answerTime {
			l.coming.invited = append(l.coming.invited, g)
		}
		if len(c.Members) == 0 {
			continue
		}
		lands[c.ID] = true
		to := placed{to: c.ID}
		for _, m := range c.Members {
			if pod := l.List.Members.Pod(m.Ref); pod != nil {
				to.kept = append(to.kept, &capacity.Kept{Node: m.Node, To: c.ID, Pod: pod})
			}
		}
		l.coming.placed = append(l.coming.placed, to)
	}
	for _, was := range before {
		if v, known := l.Ledger.View(was.to); !lands[was.to] && (!known || !v.Met()) {
			for _, id := range l.List.Excluded {
				l.queue.Retry(id, now)
			}
			return
		}
	}
}

// kept returns what the gang may not use of what is free: what is kept for others, and what they are about to take.
func (l *Loop) kept(g *waiting.Gang) []*capacity.Kept {
	kept := l.Holds.Gate.Against(g.ID, g.Pods)
	for _, other := range l.coming.placed {
		if other.to != g.ID {
			kept = append(kept, other.kept...)
		}
	}
	return kept
}

// contested reports whether what is free may not suffice both for the gang, which may start, and for the gangs with its
// shapes that were invited before it. It is looked at again when they have planned.
func (l *Loop) contested(g *waiting.Gang) bool {
	if len(l.coming.invited) == 0 || len(g.Levels.Required) > 0 {
		return false
	}
	var both []capacity.Need
	wanted := 0
	for _, need := range g.Shapes {
		all := need.Count
		for _, other := range l.coming.invited {
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
	return wanted > 0 && l.List.Capacity.BestBeside(both, nil, l.kept(g)) < wanted
}
