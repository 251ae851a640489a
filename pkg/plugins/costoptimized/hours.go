package costoptimized

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/wellknown"
)

// hold says what a pod waits for. The zero value is nothing.
type hold struct {
	window string
	until  time.Time
	// end says in a message what comes at that time.
	end string
}

// What ends the waiting of a pod.
const (
	endOpens    = "it opens at"
	endDeadline = "the pod's deadline, before it opens, is"
	endStart    = "the pod has to start, before it opens, to end by its deadline, at"
)

// same reports whether both wait for the same thing until the same instant, however that is written.
func (h hold) same(o hold) bool {
	return h.window == o.window && h.end == o.end && h.until.Equal(o.until)
}

func (h hold) waits() bool { return h.window != "" }

// String says in a message to users what the pod waits for and until when.
func (h hold) String() string {
	return fmt.Sprintf("%s: %s %s", h.Kind(), h.end, h.until.Format(time.RFC3339))
}

// Kind says it without the time, which may differ from pod to pod.
func (h hold) Kind() string { return fmt.Sprintf("waiting for price window %q", h.window) }

// holding returns what keeps the pod from starting at an instant. The window that the pod names counts before those
// that select it.
func (s *settings) holding(pod *v1.Pod, now time.Time) (hold, *wellknown.BadValue) {
	own, bad := priceview.PodStartWindow(pod)
	if bad != nil {
		return hold{}, bad
	}
	all := s.values.Windows
	i := slices.IndexFunc(all, func(w config.NamedWindow) bool {
		if priceview.NamesWindow(pod) {
			return w.Name == own.Name
		}
		return w.Selector.Matches(labels.Set(pod.Labels))
	})
	if i < 0 {
		if priceview.NamesWindow(pod) {
			return hold{}, &wellknown.BadValue{
				Object: "pod", Kind: "annotation", Key: wellknown.StartWindowKey, Value: own.Name, Allowed: namesOf(all),
			}
		}
		return hold{}, nil
	}
	w := all[i]
	if w.Window.Open(now) || !own.Deadline.IsZero() && !now.Before(own.Deadline) {
		return hold{}, nil
	}
	h := hold{window: w.Name, end: endOpens}
	next, opens := w.Window.NextOpen(now)
	if h.until = next; !opens {
		// The clocks of the place skip the window for two weeks on end. Look again in one.
		h.until = now.AddDate(0, 0, 7)
	}
	if !own.Deadline.IsZero() && (!opens || own.Deadline.Before(h.until)) {
		h.until, h.end = own.Deadline, endDeadline
		if own.Ends {
			h.end = endStart
		}
	}
	return h, nil
}

func namesOf(all []config.NamedWindow) string {
	if len(all) == 0 {
		return "a price window: this profile has none"
	}
	names := make([]string, 0, len(all))
	for _, w := range all {
		names = append(names, fmt.Sprintf("%q", w.Name))
	}
	return "one of this profile's price windows: " + strings.Join(names, ", ")
}
