package coscheduling

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"berth.dev/berth/pkg/gang"
)

func TestRefusalsOfStandIns(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	a, b, other := gang.ID{Namespace: "ns", Name: "a"}, gang.ID{Namespace: "ns", Name: "b"}, gang.ID{Namespace: "other", Name: "a"}
	t.Run("one namespace's pause is its own, and those that were skipped come back", func(t *testing.T) {
		t.Parallel()
		var r standInRefusals
		if first := r.pause("ns", a, refusedPause, now); !first {
			t.Error("the first refusal is not told")
		}
		if r.pause("ns", a, refusedPause, now.Add(time.Second)) {
			t.Error("the second refusal is told, too")
		}
		if !r.refused(b, now.Add(refusedPause-1)) || r.refused(other, now) {
			t.Error("want the namespace refused, and no other")
		}
		if ids := r.over(now.Add(refusedPause - 1)); len(ids) > 0 {
			t.Errorf("%v come back during the pause", ids)
		}
		if ids := r.over(now.Add(refusedPause)); len(ids) != 1 {
			t.Errorf("%v come back after the pause, want one to try it", ids)
		}
		r.pause("ns", a, refusedPause, now.Add(refusedPause))
		if !r.refused(b, now.Add(3*refusedPause-1)) || r.refused(b, now.Add(3*refusedPause)) {
			t.Error("the second pause is not twice as long")
		}
		ids := r.made("ns")
		slices.SortFunc(ids, func(x, y gang.ID) int { return int(x.Name[0]) - int(y.Name[0]) })
		if !slices.Equal(ids, []gang.ID{a, b}) || r.refused(a, now) {
			t.Errorf("%v come back once one is made, want all; and no pause", ids)
		}
	})
	t.Run("what the cluster does not serve is a pause for all", func(t *testing.T) {
		t.Parallel()
		var r standInRefusals
		r.pause(everywhere, a, unservedPause, now)
		if !r.refused(other, now.Add(unservedPause-1)) || r.refused(other, now.Add(unservedPause)) {
			t.Error("want all namespaces refused for the pause")
		}
	})
	t.Run("what can never be made is told once, until the gang is forgotten", func(t *testing.T) {
		t.Parallel()
		var r standInRefusals
		if !r.ban(a) || r.ban(a) || !r.refused(a, now.Add(time.Hour)) || r.refused(b, now) {
			t.Error("want one word, and the one gang refused forever")
		}
		if r.forget(a); r.refused(a, now) {
			t.Error("a gang that was forgotten is refused")
		}
	})
	t.Run("gangs that are gone leave nothing behind", func(t *testing.T) {
		t.Parallel()
		var r standInRefusals
		r.pause("ns", a, refusedPause, now)
		r.refused(b, now)
		r.ban(a)
		r.forget(a)
		r.forget(b)
		if len(r.by)+len(r.never) > 0 {
			t.Errorf("%d namespaces and %d gangs are left", len(r.by), len(r.never))
		}
	})
}

func TestTroublesOfOneNamespaceAreItsOwn(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	var n namespaceTroubles
	if pause, first := n.fail("ns", now); pause != troublePause || !first {
		t.Errorf("fail = %s, %t", pause, first)
	}
	if _, again := n.fail("ns", now); again {
		t.Error("what fails in the pause is told again")
	}
	n.succeed("other", now)
	got := []int{n.writers("ns", now), n.writers("ns", now.Add(troublePause)), n.writers("other", now), n.writers("new", now)}
	if !slices.Equal(got, []int{0, 1, writersOfOne, 1}) {
		t.Errorf("writers %v, want none in the pause, then one, all for another namespace, and one for a new one", got)
	}
	for range 20 {
		now = now.Add(troublePauseMost)
		n.fail("ns", now)
	}
	if n.writers("ns", now.Add(troublePauseMost-1)) != 0 || n.writers("ns", now.Add(troublePauseMost)) != 1 {
		t.Error("the pause is not bounded")
	}
	if n.succeed("ns", now); n.writers("ns", now) != writersOfOne {
		t.Error("a success does not end the troubles")
	}
	n.fail("bad", now)
	if n.age(now.Add(troublePauseMost + 2*standing)); len(n.by)+len(n.well) > 0 {
		t.Errorf("%d namespaces in trouble and %d others are remembered forever", len(n.by), len(n.well))
	}
}

func TestNamespacesAreWrittenInTurn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	s := newStatusWriter()
	old := now.Add(-time.Hour)
	for i := range 1000 {
		s.dirty[gang.ID{Namespace: "many", Name: strconv.Itoa(i)}] = old
	}
	for i := range statusWriters - 1 {
		s.dirty[gang.ID{Namespace: "one-" + strconv.Itoa(i), Name: "g"}] = old
	}
	s.troubles.succeed("many", now)
	count := func(ids []gang.ID) map[string]int {
		by := map[string]int{}
		for _, id := range ids {
			by[id.Namespace]++
		}
		return by
	}
	if by := count(s.due(now)); len(by) != statusWriters || by["many"] != 1 {
		t.Errorf("%d namespaces are written, %d gangs of the one with many; want %d and 1", len(by), by["many"], statusWriters)
	}
	if begun := s.due(now); len(begun) > 0 {
		t.Errorf("%d more gangs are written at the same time", len(begun))
	}
	// Those that hang keep nobody from being written, up to a bound of all.
	for range 100 {
		now = now.Add(slowWrite)
		for i := range statusWriters {
			s.dirty[gang.ID{Namespace: fmt.Sprintf("slow-%d-%d", now.Unix(), i), Name: "g"}] = old
		}
		s.due(now)
	}
	if len(s.writing) != statusWritersMost || s.busy["many"] > writersOfOne {
		t.Errorf("%d gangs are written at a time, %d of one namespace; want %d, and no more than %d", len(s.writing), s.busy["many"], statusWritersMost, writersOfOne)
	}
}
