package gang

import (
	"strings"
	"testing"
)

// Every stage and every occurrence is listed here with what follows; none means that the occurrence changes nothing.
func TestStages(t *testing.T) {
	t.Parallel()
	const none = stages
	want := [stages][occurrences]stage{
		//          isLet   isDenied goesAlone reserves  reservesFirst isPermitted isPrepared isReleased givesBack isPending isPlaced
		held:      {queued, none, none, reserved, preparing, none, none, none, none, none, done},
		queued:    {none, held, alone, reserved, preparing, none, none, none, none, none, done},
		alone:     {queued, held, none, released, none, none, none, none, none, none, done},
		preparing: {none, none, none, none, none, none, assigned, released, held, none, done},
		reserved:  {none, none, none, none, none, assigned, none, released, held, none, done},
		assigned:  {none, none, none, none, none, none, none, released, held, none, done},
		released:  {none, none, none, none, none, none, none, none, held, none, done},
		done:      {none, none, none, none, none, none, none, none, none, held, none},
	}
	for from := range stages {
		for o := range occurrences {
			m := &member{group: &group{roster: newRoster()}, stage: from}
			m.move(o)
			switch to, listed := stageTable[from][o]; {
			case want[from][o] == none && listed:
				t.Errorf("stage %d, occurrence %d: the table leads to %d, want it not to list what changes nothing", from, o, to)
			case want[from][o] == none && m.stage != from, want[from][o] != none && m.stage != want[from][o]:
				t.Errorf("stage %d, occurrence %d: %d, want %d", from, o, m.stage, want[from][o])
			}
		}
	}
}

func TestEveryStageIsReachedAndLeft(t *testing.T) {
	t.Parallel()
	reach := func(start stage) [stages]bool {
		var seen [stages]bool
		seen[start] = true
		for todo := []stage{start}; len(todo) > 0; todo = todo[1:] {
			for _, to := range stageTable[todo[0]] {
				if !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		return seen
	}
	for s := range stages {
		if !reach(done)[s] {
			t.Errorf("no member ever gets to stage %d", s)
		}
		if !reach(s)[done] {
			t.Errorf("no member ever gets from stage %d to a node", s)
		}
	}
	// A member that holds nothing can always be held back, and one that holds an assignment can always give it back.
	for s := range stages {
		m := &member{group: &group{roster: newRoster()}, stage: s}
		if s.holds() {
			m.move(givesBack)
		}
		m.move(isDenied)
		if m.stage != held && m.stage != done {
			t.Errorf("a member at stage %d cannot be held back", s)
		}
	}
}

func TestStagesThatHoldAssignments(t *testing.T) {
	t.Parallel()
	for s, want := range map[stage]string{held: "", queued: "", alone: "", preparing: "holds waits",
		reserved: "holds waits", assigned: "holds ready waits", released: "holds ready", done: ""} {
		got := ""
		for _, is := range []struct {
			name string
			yes  bool
		}{{"holds", s.holds()}, {"ready", s.ready()}, {"waits", s.waits()}} {
			if is.yes {
				got += " " + is.name
			}
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("stage %d: %q, want %q", s, got, want)
		}
	}
}
