package top

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/test/harness/assert"
)

// large is a cluster that no screen has room for.
func large() *overview.Cluster {
	c := cluster()
	long := strings.Repeat("long-name-", 5)
	for i := range 300 {
		n := c.Nodes[i%3]
		n.Name, n.Domain = fmt.Sprintf("%s%d", long, i), rack(fmt.Sprintf("rack-%d", i/30))
		c.Nodes = append(c.Nodes, n)
		c.Jobs = append(c.Jobs, overview.Job{
			Namespace: fmt.Sprintf("team-%d", i%40), Kind: "Job", Name: fmt.Sprintf("%s%d", long, i), State: overview.JobPending,
			Pods:   3,
			Reason: strings.Repeat("needs more words, ", 20), Queue: &overview.Place{Name: "q", Position: i + 1},
		})
	}
	for i := range 40 {
		c.Namespaces = append(c.Namespaces, overview.Namespace{Name: fmt.Sprintf("team-%d", i), Pods: 3, PendingPods: 21})
	}
	return c
}

func on(c *overview.Cluster, width, height int) *Model {
	m := live(func(s *overview.Source) { s.Cluster = func() *overview.Cluster { return c } })
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

// What has no room leaves a sign: an ellipsis in a line, the number of columns, and arrows for lines above and below.
func TestWhatIsCutOffLeavesASign(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{80, 24}, {120, 30}, {200, 50}} {
		m := on(large(), size.width, size.height)
		for tab := range tabs {
			press(m, "esc", fmt.Sprint(tab+1), "home")
			screen := m.draw()
			if bar := screen[len(m.header())-1]; size.width == 80 && tab == tabMap {
				assert.Contains(t, bar, tabNames[:]...)
			}
			for _, line := range screen {
				if got := text.StringWidthWithoutEscSequences(line); got > size.width {
					t.Errorf("%v, %s: a line has %d columns: %q", size, tabNames[tab], got, line)
				}
			}
			shown := len(m.lines)
			if footer := screen[len(screen)-1]; shown > size.height && !strings.HasPrefix(footer, "↓ 1 of ") {
				t.Errorf("%v, %s: %d lines, and the footer is %q", size, tabNames[tab], shown, footer)
			}
			press(m, "end")
			screen = m.draw()
			last := fmt.Sprintf("↑ %d of ", shown)
			if footer := screen[len(screen)-1]; shown > size.height && !strings.HasPrefix(footer, last) {
				t.Errorf("%v, %s at the end: the footer is %q", size, tabNames[tab], footer)
			}
			heading, hidden := screen[len(m.header())], tab != tabMap && len(m.layOut()) < len(m.columns)
			if hidden && !strings.Contains(heading, "(+") && !strings.Contains(heading, "…") {
				t.Errorf("%v, %s: the columns without room are not counted: %q", size, tabNames[tab], heading)
			}
		}
	}
}

func TestNamespacesAndQueuesOpenTheirWorkloads(t *testing.T) {
	t.Parallel()
	c := cluster()
	c.Jobs = append(c.Jobs, overview.Job{Namespace: "other", Kind: "Job", Name: "else", State: overview.JobRunning})
	c.Namespaces = []overview.Namespace{{Name: "other"}, {Name: "team", Pods: 2, PendingPods: 3}}
	for name, test := range map[string]struct {
		keys []string
		want []string // the first cells of the list
		tab  int
	}{
		"a namespace":        {[]string{"7", "down", "enter"}, []string{"team/train", "team/web"}, tabJobs},
		"found by a filter":  {[]string{"7", "/", "o", "t", "h", "enter", "enter"}, []string{"other/else"}, tabJobs},
		"a queue":            {[]string{"8", "enter"}, []string{"team/train"}, tabJobs},
		"and back":           {[]string{"7", "down", "enter", "esc"}, []string{"other", "team"}, tabNamespaces},
		"a filter within it": {[]string{"7", "down", "enter", "/", "w", "e", "b", "enter"}, []string{"team/web"}, tabJobs},
		"the filter ends first": {
			[]string{"7", "down", "enter", "/", "w", "e", "b", "enter", "esc"}, []string{"team/train", "team/web"}, tabJobs,
		},
		"another tab ends it": {[]string{"8", "enter", "4", "3"}, []string{"team/train", "team/web", "other/else"}, tabJobs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := on(c, 100, 24)
			press(m, test.keys...)
			var got []string
			for _, e := range m.lines {
				got = append(got, e.cells[0])
			}
			if diff := cmp.Diff(test.want, got); diff != "" || m.tab != test.tab {
				t.Errorf("on tab %s (-want +got):\n%s", tabNames[m.tab], diff)
			}
		})
	}
}

// The reason is what one looks for: it is on the screen whatever its width, and in full for the chosen entry.
func TestListsShowWhyOnEveryScreen(t *testing.T) {
	t.Parallel()
	long := cluster()
	long.Queue[0].Name = strings.Repeat("long-name-", 6) + "0"
	long.Queue[0].Reason = "needs 3 nodes" + strings.Repeat(", more words", 9) + ", fits 2"
	for _, tt := range []struct {
		width int
		keys  []string
		want  string
	}{
		{80, []string{"4"}, "#  Name  Pods  GPUs  Waiting  Reason  (+2 columns)"},
		{140, []string{"4"}, "#  Name  Pods  GPUs  Priority  Waiting  Scheduler  Reason"},
		{80, []string{"5"}, "Gang  On nodes  Needs  Members  GPUs  Waiting  Reason  (+2 columns)"},
		{60, []string{"6"}, "Last seen  Object  Reason  Message …"},
		{70, []string{"2"}, "Node  GPUs  Used  Stranded  Free cores  Idle $/h  State …"},
		{140, []string{"2"}, "Node  GPUs  Used  Stranded  Free cores  Pods  $/h  Idle $/h  Model  rack  State"},
		{40, []string{"4"}, "#  Name  Reason …"},
		// Columns that are not shown are not sorted by.
		{80, []string{"4", "s", "s", "s", "s", "s"}, "#  Name  Pods  GPUs  Waiting↓  Reason  (+2 columns)"},
	} {
		m := live(func(s *overview.Source) { s.Cluster = func() *overview.Cluster { return long } })
		m.Update(tea.WindowSizeMsg{Width: tt.width, Height: 24})
		press(m, tt.keys...)
		screen := m.draw()
		heading := spaced.ReplaceAllString(strings.TrimSpace(text.StripEscape(screen[len(m.header())])), "  ")
		if diff := cmp.Diff(tt.want, heading); diff != "" {
			t.Errorf("%d columns, keys %v (-want +got):\n%s", tt.width, tt.keys, diff)
		}
		if all := strings.Join(screen, " "); tt.width == 80 && len(tt.keys) == 1 && tt.keys[0] == "4" &&
			!strings.Contains(all, "words, fits 2") {
			t.Errorf("the reason of the chosen entry is not on the screen in full:\n%s", strings.Join(screen, "\n"))
		}
	}
}

func TestANameIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cell  string
		width int
		last  bool
		want  string
	}{
		{"default/train-a-12", 18, false, "default/train-a-12"},
		{"default/train-a-12", 11, false, "defau…-a-12"},
		{"default/train-a-12", 10, false, "defau…a-12"},
		{"why it waits so long", 10, true, "why it wa…"},
		{"short", 8, false, "short   "},
	} {
		if got := fill(tt.cell, shownColumn{width: tt.width}, tt.last); got != tt.want {
			t.Errorf("%q in %d columns is %q, want %q", tt.cell, tt.width, got, tt.want)
		}
	}
}
