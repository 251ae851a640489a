package svg

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAGanttChart(t *testing.T) {
	t.Parallel()
	bar := func(from, to float64, label string) Bar {
		return Bar{Span: Span{From: from, To: to, Class: "x", Title: "what " + label + " is"}, Label: label}
	}
	uncertain, open := bar(10, 40, "R&D"), bar(-5, 0, "open")
	uncertain.Low, uncertain.High, open.Open = 30, 60, true
	chart := Gantt{
		ID: "g", Title: "G & g", Description: "What <it> shows", Begin: -20, End: 100, Format: plain,
		Rows: []GanttRow{{Name: "a-name-that-is-longer-than-a-row-has-room", Bars: []Bar{uncertain, open}},
			{Name: "b", Bars: []Bar{bar(500, 600, "beyond"), bar(-10, 500, "goes on"), bar(-9, -8.9, "short")}}},
		Legend: []Span{{Class: "x", Title: "what x is"}},
	}
	drawn := chart.SVG()
	got := read(t, drawn)
	if want := 2 + 1 + 2; got.elements["rect"] != want || got.elements["desc"] != 1 {
		t.Errorf("%d rectangles, want %d: two rows, the legend, and two bars that end within", got.elements["rect"], want)
	}
	for _, want := range []string{"G & g", "What <it> shows", "…ger-than-a-row-has-room", "R&D", "what R&D is", "open",
		"goes on", "what short is", "what x is", "-15", "0", "90"} {
		if !strings.Contains(got.text, want+"\n") {
			t.Errorf("no text %q in:\n%s", want, got.text)
		}
	}
	if strings.Contains(got.text, "beyond") {
		t.Error("what begins beyond the edge is drawn")
	}
	if strings.Count(drawn, `class="may"`) != 1 || strings.Count(drawn, `class="now"`) != 1 {
		t.Error("there is not one interval and one line at now")
	}
}

func TestBarsThatOverlapHaveLanesOfTheirOwn(t *testing.T) {
	t.Parallel()
	bar := func(from, to, low, high float64) Bar {
		return Bar{Span: Span{From: from, To: to}, Low: low, High: high}
	}
	open := bar(15, 0, 0, 0)
	open.Open = true
	for _, tc := range []struct {
		name string
		bars []Bar
		want []int
		n    int
	}{
		{"an empty row is as high as one lane", nil, []int{}, 1},
		{"what follows shares a lane, in whatever order it is given", []Bar{bar(10, 20, 0, 0), bar(0, 10, 0, 0)}, []int{0, 0},
			1},
		{"what overlaps does not", []Bar{bar(0, 11, 0, 0), bar(10, 20, 0, 0), bar(12, 30, 0, 0)}, []int{0, 1, 0}, 2},
		{"an end that may be late takes room", []Bar{bar(0, 10, 10, 12), bar(11, 20, 0, 0)}, []int{0, 1}, 2},
		{"and a start that may be early", []Bar{bar(0, 10, 0, 0), bar(11, 20, 9, 13)}, []int{0, 1}, 2},
		{"nothing comes behind what has no end", []Bar{open, bar(50, 60, 0, 0), bar(0, 10, 0, 0)}, []int{0, 1, 0}, 2},
	} {
		g := Gantt{Begin: -20, End: 100}
		lanes, n := g.lanes(tc.bars)
		if diff := cmp.Diff(tc.want, lanes); diff != "" || n != tc.n {
			t.Errorf("%s: %d lanes, want %d (-want +got):\n%s", tc.name, n, tc.n, diff)
		}
	}
}

func TestALabelIsWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	at := func(bars ...Bar) string {
		g := Gantt{Begin: -10, End: 90, Format: plain, Rows: []GanttRow{{Name: "n", Bars: bars}}}
		var found []string
		for _, part := range strings.Split(g.SVG(), "</text>") {
			if i := strings.LastIndex(part, ">"); strings.Contains(part, `<g><title>`) || strings.Contains(part, "</title><rect") {
				found = append(found, part[i+1:])
			}
		}
		return strings.Join(found, "|")
	}
	label := func(from, to float64) Bar { return Bar{Span: Span{From: from, To: to}, Label: "a-long-label"} }
	for _, tc := range []struct {
		name string
		bars []Bar
		want string
	}{
		{"in a bar that is wide", []Bar{label(0, 50)}, "a-long-label"},
		{"behind one that is short", []Bar{label(0, 1)}, "a-long-label"},
		{"as much as there is room for up to the next", []Bar{label(0, 1), label(7, 60)}, "a-lon…|a-long-label"},
		{"nowhere without room", []Bar{label(0, 1), label(1, 60)}, "a-long-label"},
	} {
		if got := at(tc.bars...); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
