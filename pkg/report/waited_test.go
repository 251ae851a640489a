package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/replay/replayed"
)

// waiting is a comparison in which the gang waits for ten minutes with A, and for some seconds with B.
func waiting(withB float64) *Comparison {
	c := comparison()
	side := func(start float64) (map[string]float64, []replayed.Stay) {
		return map[string]float64{"train": start, "short": 100}, []replayed.Stay{
			{Job: "before", Node: "n1", From: 0, To: 20}, {Job: "old", Node: "n1", Arrived: 50, From: 95, To: start},
			{Job: "meanwhile", Node: "n2", From: 200, To: start}, {Job: "elsewhere", Node: "n3", From: 200, To: 9000},
			{Job: "short", Node: "n3", Gang: true, Arrived: 100, From: 100, To: 300},
			{Job: "train", Node: "n1", Gang: true, Arrived: 100, From: start, To: 9000},
			{Job: "train", Node: "n2", Gang: true, Arrived: 100, From: start, To: 9000},
			{Job: "much later", Node: "n1", From: 9000, To: 9100},
		}
	}
	c.A.Results[0].Starts, c.A.Results[0].Stays = side(700)
	c.B.Results[0].Starts, c.B.Results[0].Stays = side(100 + withB)
	return c
}

func TestTheNodesOfTheGangThatWaitedLongestAreDrawn(t *testing.T) {
	t.Parallel()
	figures := waitedFigures(waiting(300))
	if len(figures) != 2 || figures[0].Title != "A: the nodes of gang train, which waited 10m" ||
		figures[1].Title != "B: the nodes of gang train, which waited 5m" {
		t.Fatalf("%d figures: %+v", len(figures), figures)
	}
	want := [][]string{{"n1", "old", "5s before", "10m"}, {"n1", "train", "10m", "2h28m"},
		{"n2", "meanwhile", "1m40s", "10m"}, {"n2", "train", "10m", "2h28m"}}
	if diff := cmp.Diff(want, figures[0].Table); diff != "" {
		t.Errorf("stays (-want +got):\n%s", diff)
	}
	for class, name := range map[string]string{"running": "old", "backfilled": "meanwhile", "reserved": "train"} {
		if !strings.Contains(string(figures[0].SVG), `<title>`+name) || !strings.Contains(string(figures[0].SVG), `class="span `+class+`"`) {
			t.Errorf("%s is not drawn as %s: %s", name, class, figures[0].SVG)
		}
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, waiting(300)); err != nil ||
		!strings.Contains(page.String(), "A: the nodes of gang train, which waited 10m") {
		t.Errorf("the page does not have it: %v", err)
	}
}

func TestWithoutAGangThatWaitedNothingIsDrawn(t *testing.T) {
	t.Parallel()
	short, order, once := waiting(30), waiting(300), waiting(300)
	short.A = short.B
	order.Mode = replayed.ArrivalOrder
	delete(once.B.Results[0].Starts, "train")
	for name, c := range map[string]*Comparison{"no gang": comparison(), "a short wait": short, "arrival order": order,
		"a gang that starts only with A": once} {
		if got := waitedFigures(c); len(got) > 0 {
			t.Errorf("%s: %d figures", name, len(got))
		}
	}
}

func TestFewNodesAndStaysAreDrawn(t *testing.T) {
	t.Parallel()
	r := &replayed.Result{}
	w := waitedGang{name: "train", begin: 0, end: 1000}
	for i := range 20 {
		r.Stays = append(r.Stays, replayed.Stay{Job: "train", Node: string(rune('a' + i)), Gang: true, From: 100, To: 200})
	}
	if nodes, more := w.nodes(r, 100); len(nodes) != mostDrawn || more != " 8 nodes are left out." {
		t.Errorf("%d nodes,%s", len(nodes), more)
	}
	for i := range 100 {
		r.Stays = append(r.Stays, replayed.Stay{Job: "j", Node: "a", From: float64(i), To: float64(2 * i)})
	}
	if stays := w.stays(r, "a"); len(stays) != mostBars || stays[0].From != 41 {
		t.Errorf("%d stays, the first from %v", len(stays), stays[0].From)
	}
}
