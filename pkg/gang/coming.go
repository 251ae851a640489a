package gang

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Coming is a group that is about to take capacity: it was invited to plan, or its members have nodes and are not bound
// yet.
type Coming struct {
	ID ID
	// InvitedAt is when it was invited to plan, zero if it has done so.
	InvitedAt time.Time
	// Members are those that were given a node and are not bound.
	Members []Placed
}

// Placed is a member and the node that it is to have.
type Placed struct {
	Ref
	Node string
}

// Coming returns the groups that are about to take capacity, by name.
func (l *Ledger) Coming() []Coming {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Coming, 0, len(l.coming))
	for id, g := range l.coming {
		if !g.isComing() {
			delete(l.coming, id)
			continue
		}
		c := Coming{ID: id}
		if g.attempts.invited && g.plan == nil {
			c.InvitedAt = g.attempts.invitedAt
		}
		for uid, m := range g.members {
			node := g.plan.node(uid)
			if m.stage.holds() {
				node = m.node
			}
			if node != "" && m.State == Pending {
				c.Members = append(c.Members, Placed{m.Ref(), node})
			}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Coming) int {
		return cmp.Or(strings.Compare(a.ID.Namespace, b.ID.Namespace), strings.Compare(a.ID.Name, b.ID.Name))
	})
	return all
}

func (g *group) isComing() bool { return g.plan != nil || g.attempts.invited }
