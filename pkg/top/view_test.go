package top

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/tables"
	"berth.dev/berth/test/harness/await"
)

func TestTheViewRunsUntilItIsLeft(t *testing.T) {
	t.Parallel()
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = in.Close() })
	var out bytes.Buffer
	ended := make(chan error, 1)
	source := live().source
	go func() { ended <- Run(t.Context(), source, false, in, &out) }()
	if _, err := keys.Write([]byte("3q")); err != nil {
		t.Fatal(err)
	}
	if err := await.Next(t, ended, "the end"); err != nil {
		t.Fatal(err)
	}
	if begun, ended := strings.Contains(out.String(), "\x1b[?1049h"), strings.Contains(out.String(),
		"\x1b[?1049l"); !begun || !ended {
		t.Errorf("the terminal was taken: %v, and given back: %v", begun, ended)
	}
}

func TestGangsShowTheirGroupsWhereAnyHasSome(t *testing.T) {
	t.Parallel()
	gangs := []overview.Gang{{Name: "flat"}, {Name: "tree", Groups: "2 of 4 replica (worker=4)"}}
	for some, want := range map[int]int{1: len(gangColumns), 2: len(gangColumns) + 1} {
		columns, cells := gangTable(gangs[:some])
		if len(columns) != want || len(cells(&gangs[0])) != want {
			t.Errorf("%d gangs: %d columns and %d cells, want %d", some, len(columns), len(cells(&gangs[0])), want)
		}
	}
	columns, cells := gangTable(gangs)
	if at := slices.IndexFunc(columns,
		func(c tables.Column) bool { return c.Name == "Groups" }); cells(&gangs[1])[at] != gangs[1].Groups {
		t.Errorf("the groups are not in their column: %v", cells(&gangs[1]))
	}
}
