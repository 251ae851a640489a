package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/overview"
)

func TestThePageOfAGangShowsItsTimeLine(t *testing.T) {
	t.Parallel()
	_, address := started(t)
	_, body, _ := get(t, address+"gang?namespace=team&name=g")
	for _, want := range []string{
		"created, 0s</text>", "first pod, complete, 2s</text>", "plan, 3s</text>", "bind, 30s</text>", ">1m</text>", `<title>g-1 waits</title>`, ` runs on a-1</title>`,
		"<td>30s ago</td><td>30s</td><td>1 member bound</td>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
	if n := strings.Count(body, `class="moment"`); n != 4 {
		t.Errorf("%d moments are marked, want those of each second once", n)
	}
}

func TestTheLastWordsOfAGang(t *testing.T) {
	t.Parallel()
	now, h := cluster().Taken, history()
	for words, want := range map[string]int{"": 0, "fits 1 of 2": 1, evil: 0} { // evil is what the plan said already
		g := &overview.Gang{Reason: words}
		list := moments(h, g, now)
		if got := len(list) - len(h.Moments); got != want {
			t.Errorf("%q adds %d rows, want %d", words, got, want)
		}
		if last := list[len(list)-1]; want == 1 && last != (moment{Ago: "now", Name: "last words", Words: words}) {
			t.Errorf("%q is shown as %+v", words, last)
		}
	}
}

func TestTheTimeLineOfAGang(t *testing.T) {
	t.Parallel()
	now := cluster().Taken
	bars := func(change func(*overview.History)) string {
		h := history()
		change(h)
		return timeLine(h, now)
	}
	for _, tc := range []struct {
		name   string
		change func(*overview.History)
		class  string
		want   int
	}{
		{"a member that runs waited, was bound and runs", func(*overview.History) {}, "span ", 4 + 3},
		{"one that waits is drawn until now", func(*overview.History) {}, "span waits", 2 + 1},
		{"one that has ended is drawn no further", func(h *overview.History) {
			h.Members[0].Ready, h.Members[0].Ended = time.Time{}, now.Add(-time.Second)
		}, "span runs", 1},
		{"a large gang is drawn in part", func(h *overview.History) {
			for i := range 2 * mostDrawn {
				h.Members = append(h.Members, overview.Member{Name: fmt.Sprint("m-", i), Created: now.Add(-time.Minute)})
			}
		}, `class="row"`, mostDrawn},
		{"a gang of no members has its moments", func(h *overview.History) { h.Members = nil }, `class="moment"`, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if drawn := bars(tc.change); strings.Count(drawn, tc.class) != tc.want {
				t.Errorf("%d of %q, want %d:\n%s", strings.Count(drawn, tc.class), tc.class, tc.want, drawn)
			}
		})
	}
}
