package loop

import (
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/waiting"
)

// mostInvited is how many gangs are in kube-scheduler's queue to plan at a time: others there do not wait for all gangs
// that may fit, and a gang that comes later is not far behind.
const mostInvited = 16

// next invites the gangs to plan that are due, and returns after what time to look again, 0 if none is left. None is
// invited before single pods that come first and have yet to be named.
func (l *Loop) next(now time.Time) (effects []gang.Effects, wait time.Duration) {
	for len(l.coming.invited) < mostInvited {
		id, ok, wait := l.queue.First(now)
		if !ok {
			return effects, wait
		}
		g := l.List.ByID[id]
		excluded := l.excludes(g)
		if !excluded && (l.contested(g) || l.Held.backlog.LeavesOut(g.Key)) {
			return effects, answerTime
		}
		l.queue.Next(now)
		if excluded {
			l.ruleOut(g, now)
			continue
		}
		if rest := l.Pace.Begin(id.Namespace, now); rest > 0 {
			l.queue.Wait(id, g.Key, now.Add(rest), now)
			l.queue.Retry(id, now)
			continue
		}
		g.Excluded, g.Roomy = false, l.roomy(g)
		l.coming.invited = append(l.coming.invited, g)
		effects = append(effects, l.Ledger.Agenda.Invite(id, now))
	}
	return effects, answerTime
}

// ruleOut tells a gang why it cannot start, without an attempt.
func (l *Loop) ruleOut(g *waiting.Gang, now time.Time) {
	// Of those that were excluded before, describe tells the newest reasons, a few at a time.
	if !g.Excluded || g.Fresh {
		l.Ledger.Agenda.RuleOut(g.ID, l.why(g), now)
	}
	l.queue.Wait(g.ID, g.Key, g.RetryAt, now)
	if g.Excluded = true; !g.Listed {
		g.Listed = true
		l.List.Excluded = append(l.List.Excluded, g.ID)
	}
}

// resume has the gangs tried again for which pods to evict were found or evicted, and pods for which that is so or that
// were turned away from what is kept.
func (l *Loop) resume(n *waiting.News, now time.Time) []gang.Effects {
	effects := make([]gang.Effects, 0, 1+len(n.Found))
	for _, id := range n.Found {
		effects = append(effects, l.Ledger.Agenda.Resume(id, now))
	}
	return append(effects, gang.Effects{Activate: n.Activations})
}
