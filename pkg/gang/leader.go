package gang

import (
	"cmp"
	"time"

	"berth.dev/berth/pkg/obstacle"
)

// lead returns the member that stands for the group in the queue: the oldest that can be placed and has not declined,
// chosen again only when it is gone, so that the queue sees one leader at a time.
func (g *group) lead() *member {
	if g.leader != nil && g.leader.mayLead() && !g.leader.declined {
		return g.leader
	}
	g.leader = nil
	for _, m := range g.members {
		if m.mayLead() && (g.leader == nil || m.leadsBefore(g.leader)) {
			g.leader = m
		}
	}
	return g.leader
}

func (m *member) mayLead() bool { return m.State == Pending && m.Ours && !m.stage.holds() }

func (m *member) leadsBefore(o *member) bool {
	if m.declined != o.declined {
		return o.declined
	}
	return m.before(o)
}

// compare orders members, the oldest first.
func (m *Member) compare(o *Member) int {
	if c := m.Created.Compare(o.Created); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(m.Name, o.Name), cmp.Compare(m.UID, o.UID))
}

func (m *member) before(o *member) bool { return m.compare(&o.Member) < 0 }

func byAge(a, b *member) int { return a.compare(&b.Member) }

// patience is how long a group waits for the leader that was invited to plan: another plugin may keep it out of the
// queue.
const patience = 10 * time.Second

// passOver invites another leader in place of one that does not come.
func (l *Ledger) passOver(g *group, now time.Time) Effects {
	if m := g.lead(); m != nil {
		g.decline(m)
	}
	return l.invite(g, now)
}

// decline passes the lead on from the member, which cannot plan, and reports whether there is another that has not
// declined.
func (g *group) decline(m *member) bool {
	m.declined, g.leader = true, nil
	if next := g.lead(); next != nil && !next.declined {
		return true
	}
	for _, o := range g.members {
		o.declined = false
	}
	return false
}

// maxDeclined is how many leaders in a row may decline before the group is blocked.
const maxDeclined = 3

// Decline records that the member, whose turn it is to lead, was turned away by a plugin before it could plan. Another
// one leads instead; if several in a row declined, or all, the group is blocked with that reason, and the next attempt
// is led by one that has not declined yet.
func (l *Ledger) Decline(uid UID, why obstacle.Reason, backoff Backoff, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g := m.group
	if kind, _ := m.turn(); kind != Lead {
		return Effects{}
	}
	m.move(isDenied)
	g.attempts.declined++
	if another := g.decline(m); !another || g.attempts.declined == maxDeclined {
		return l.block(g, why, nil, g.leader == m, backoff, now)
	}
	return l.invite(g, now)
}
