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
	// deadline says that until is for the pod's deadline and not the opening of the window, ends that it has to start then
	// to end by it.
	deadline, ends bool
}

// same reports whether both wait for the same thing until the same instant, however that is written.
func (h hold) same(o hold) bool {
	return h.window == o.window && h.deadline == o.deadline && h.ends == o.ends && h.until.Equal(o.until)
}

func (h hold) waits() bool { return h.window != "" }

// String says in a message to users what the pod waits for and until when.
func (h hold) String() string {
	end := "it opens at"
	switch {
	case h.ends:
		end = "the pod has to start, before it opens, to end by its deadline, at"
	case h.deadline:
		end = "the pod's deadline, before it opens, is"
	}
	return fmt.Sprintf("%s: %s %s", h.Kind(), end, h.until.Format(time.RFC3339))
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
	opens, ok := w.Window.NextOpen(now)
	switch {
	case !own.Deadline.IsZero() && (!ok || own.Deadline.Before(opens)):
		return hold{window: w.Name, until: own.Deadline, deadline: true, ends: own.Ends}, nil
	case !ok:
		// The clocks of the place skip the window for two weeks on end. Look again in one.
		return hold{window: w.Name, until: now.AddDate(0, 0, 7)}, nil
	}
	return hold{window: w.Name, until: opens}, nil
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
