package gang

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkLife starts gangs of 64 beside many others that wait, and reports what each call costs for one member.
func BenchmarkLife(b *testing.B) {
	for _, ordered := range []bool{false, true} {
		b.Run(fmt.Sprintf("ordered=%t", ordered), func(b *testing.B) {
			const size = 64
			l := NewLedger(time.Minute, nil)
			spent := map[string]time.Duration{}
			timed := func(call string, do func()) {
				begin := time.Now()
				do()
				spent[call] += time.Since(begin)
			}
			gangs := 0
			for b.Loop() {
				id := ID{"ns", fmt.Sprint(gangs)}
				gangs++
				l.Define(id, Object, minimumOf(size), t0)
				members := make([]Member, size)
				proposal := Proposal{Ordered: ordered}
				for i := range members {
					members[i] = changed(i, func(m *Member) { m.UID = UID(fmt.Sprintf("%d-%02d", gangs, i)) })
					proposal.Assignments = append(proposal.Assignments, Assignment{UID: members[i].UID, Node: node(i)})
				}
				for i := range members {
					timed("Observe", func() { l.Observe(id, members[i], t0) })
				}
				l.Agenda.Invite(id, t0)
				l.Cycles.Admit(members[0].UID)
				timed("Turn(lead)", func() { l.Cycles.Turn(members[0].UID) })
				timed("Propose", func() { l.Cycles.Propose(members[0].UID, proposal, t0) })
				for i := range members {
					uid := members[i].UID
					timed("Admit", func() { l.Cycles.Admit(uid) })
					timed("Key", func() { l.Cycles.Key(uid) })
					timed("Turn", func() { l.Cycles.Turn(uid) })
					timed("Reserve", func() { l.Cycles.Reserve(uid, node(i), t0) })
					timed("Permit", func() { l.Cycles.Permit(uid, t0) })
				}
				for i := range members {
					members[i].State, members[i].Node = Bound, node(i)
					timed("Observe(bound)", func() { l.Observe(id, members[i], t0) })
				}
				if v, _ := l.View(id); !v.Started {
					b.Fatal("the gang has not started")
				}
			}
			for call, d := range spent {
				n := gangs * size
				if call == "Turn(lead)" || call == "Propose" {
					n = gangs
				}
				b.ReportMetric(float64(d.Nanoseconds())/float64(n), call+"-ns")
			}
		})
	}
}

// BenchmarkWaiting asks for one of 3,000 gangs of 64 after the other, as the loop does when all of them are touched.
func BenchmarkWaiting(b *testing.B) {
	const gangs, size = 3000, 64
	for _, classes := range []int{1, 64} {
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			l := NewLedger(time.Minute, nil)
			ids := make([]ID, gangs)
			for g := range ids {
				ids[g] = ID{"ns", fmt.Sprint(g)}
				l.Define(ids[g], Object, minimumOf(size), t0)
				for i := range size {
					l.Observe(ids[g], changed(i, func(m *Member) {
						m.UID, m.Class = UID(fmt.Sprintf("%d-%02d", g, i)), fmt.Sprint(i%classes)
					}), t0)
				}
			}
			i := 0
			for b.Loop() {
				if _, waits := l.Agenda.Waiting(ids[i%gangs]); !waits {
					b.Fatal("a gang does not wait")
				}
				i++
			}
		})
	}
}
