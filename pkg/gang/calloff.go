package gang

import "time"

// CallOff takes back what Evict and Spare have noted of a member that need not go any more. Where the group was to go
// as a whole, its pending members wait no longer.
func (l *Ledger) CallOff(uid UID, now time.Time) Effects {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.member[uid]
	if m == nil {
		return Effects{}
	}
	g := m.group
	delete(g.eviction.spared, uid)
	if !g.evicting() {
		return Effects{}
	}
	l.endEviction(g)
	return l.settle(g, now)
}
