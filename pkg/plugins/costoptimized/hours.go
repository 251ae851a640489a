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

// wait is what a pod waits for. The zero value is nothing.
type wait struct {
	window string
	until  time.Time
	// end says in messages what happens at that time.
	end string
}

// What ends the waiting of a pod.
const (
	endOpens    = "it opens at"
	endDeadline = "the pod's deadline, before it opens, is"
	endStart    = "the pod has to start, before it opens, to end by its deadline, at"
)

// same reports whether both wait for the same thing until the same instant, however that is written.
func (w wait) same(o wait) bool {
	return w.window == o.window && w.end == o.end && w.until.Equal(o.until)
}

func (w wait) waits() bool { return w.window != "" }

// String is the message to users: what the pod waits for and until when.
func (w wait) String() string {
	return fmt.Sprintf("%s: %s %s", w.Kind(), w.end, w.until.Format(time.RFC3339))
}

// Kind is the message without the time, which may differ from pod to pod.
func (w wait) Kind() string { return fmt.Sprintf("waiting for price window %q", w.window) }

// waitFor returns what the pod has to wait for at an instant. The window that the pod names takes precedence over those
// that select it.
func (s *settings) waitFor(pod *v1.Pod, now time.Time) (wait, *wellknown.BadValue) {
	own, bad := priceview.PodStartWindow(pod)
	if bad != nil {
		return wait{}, bad
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
			return wait{}, &wellknown.BadValue{
				Object: "pod", Kind: "annotation", Key: wellknown.StartWindowKey, Value: own.Name, Allowed: namesOf(all),
			}
		}
		return wait{}, nil
	}
	named := all[i]
	if named.Window.Open(now) || !own.Deadline.IsZero() && !now.Before(own.Deadline) {
		return wait{}, nil
	}
	w := wait{window: named.Name, end: endOpens}
	next, opens := named.Window.NextOpen(now)
	if w.until = next; !opens {
		// Changes of the clock skip the window for two weeks. Check again in one.
		w.until = now.AddDate(0, 0, 7)
	}
	if !own.Deadline.IsZero() && (!opens || own.Deadline.Before(w.until)) {
		w.until, w.end = own.Deadline, endDeadline
		if own.Ends {
			w.end = endStart
		}
	}
	return w, nil
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
