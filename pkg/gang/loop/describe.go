package loop

import "time"

const (
	// describeEvery is how often the reasons of gangs that are ruled out are brought up to date: of describeAtOnce
	// gangs at a time, and of more for at most describeFor where the cluster has changed for them. No gang is tried
	// meanwhile. Where nothing has changed, describeAnyway gangs are looked at, and only each describeUnchanged.
	describeEvery     = time.Second
	describeUnchanged = 5 * time.Second
	describeAtOnce    = 100
	describeAnyway    = 10
	describeFor       = 50 * time.Millisecond
)

// describe looks again at the gangs that were ruled out, those first that were not looked at for the longest
// time: what they lack changes with every pod that comes, which is nothing to try them for. Those for which the account
// has not changed are looked at a few at a time, for what is not in the account.
func (l *Loop) describe(now time.Time) {
	if now.Sub(l.due.described) < describeEvery {
		return
	}
	state, began, list := l.List.Capacity.Looks.State(), time.Now(), l.List
	if state == l.described && now.Sub(l.due.described) < describeUnchanged {
		return
	}
	l.due.described, l.described = now, 0
	for looked := range len(list.Excluded) {
		id := list.Excluded[0]
		g := list.ByID[id]
		unchanged := g == nil || !g.Excluded || g.DescribedAt == state
		if unchanged && looked >= describeAnyway {
			break
		}
		if looked >= describeAtOnce && time.Since(began) >= describeFor {
			return
		}
		list.Excluded = list.Excluded[1:]
		if g == nil || !g.Excluded {
			if g != nil {
				g.Listed = false
			}
			continue
		}
		g.DescribedAt = state
		if l.excludes(g) {
			l.Ledger.Agenda.RuleOut(id, l.why(g), now)
		} else {
			l.queue.Retry(id, now)
		}
		list.Excluded = append(list.Excluded, id)
	}
	l.described = state
}
