package coscheduling

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/loop"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/process"
)

func TestAPlanForWhatOthersComeFirst(t *testing.T) {
	t.Parallel()
	runs, now := gang.ID{Namespace: "ns", Name: "runs"}, time.Now()
	node := st.MakeNode().Name("n").Capacity(map[v1.ResourceName]string{v1.ResourcePods: "110"}).Obj()
	for name, test := range map[string]struct {
		// waits is the priority of one that waits, lacks has a gang that has started lack a member, and seen has the loop
		// look before the plan is made.
		waits       int32
		lacks, seen bool
		want        bool
	}{
		"none waits that comes first":             {},
		"a more important one waits":              {waits: 6, want: true},
		"one that is as important waits":          {waits: 5},
		"a gang that runs lacks a member":         {lacks: true, want: true},
		"the loop has seen what came free before": {waits: 6, lacks: true, seen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := waiting.NewList()
			c := &coordinator{headroom: capacity.New(&process.Profiles{}), loop: &loop.Loop{List: list},
				ledger: gang.NewLedger(time.Minute, make(chan struct{}, 1))}
			list.Priorities.Raise(gang.Key{Priority: test.waits})
			c.ledger.Define(runs, gang.Object, gang.Spec{Minimum: gang.Minimum{Total: 2}}, now)
			for _, uid := range []gang.UID{"first", "second"} {
				c.ledger.Observe(runs, gang.Member{Ref: gang.Ref{UID: uid}, State: gang.Bound, Node: "m"}, now)
			}
			if test.lacks {
				c.ledger.Forget("first", now)
				c.ledger.Observe(runs, gang.Member{Ref: gang.Ref{UID: "next"}, State: gang.Pending, Ours: true}, now)
			}
			c.headroom.Feed.SetNode(node)
			if test.seen {
				c.headroom.Looks.Refresh()
			}
			l := &leading{p: &Plugin{shared: c}, pod: st.MakePod().Name("leader").Priority(5).Obj()}
			if got := l.comesLate([]gang.Assignment{{UID: "leader", Node: "n"}}); got != test.want {
				t.Errorf("the plan comes late: got %t, want %t", got, test.want)
			}
		})
	}
}
