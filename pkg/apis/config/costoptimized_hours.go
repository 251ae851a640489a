package config

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // for images without time zone data

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/cost/price"
)

// weekdayNames by time.Weekday.
var weekdayNames = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// NamedWindow is a price window, with the pods that wait for it without naming it.
//
// +kubebuilder:object:generate=false
type NamedWindow struct {
	Name     string
	Window   *price.Window
	Selector labels.Selector
}

func readWindows(path *field.Path, windows []PriceWindow) ([]NamedWindow, field.ErrorList) {
	var errs field.ErrorList
	read := make([]NamedWindow, len(windows))
	seen := map[string]bool{}
	for i := range windows {
		at, name := path.Index(i), windows[i].Name
		for _, wrong := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(at.Child("name"), name, wrong))
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		seen[name] = true
		window, windowErrs := readWindow(at, &windows[i])
		selector, selectorErrs := readPodSelector(at.Child("podSelector"), windows[i].PodSelector)
		errs = append(append(errs, windowErrs...), selectorErrs...)
		read[i] = NamedWindow{Name: name, Window: window, Selector: selector}
	}
	return read, errs
}

// readPodSelector returns a selector that selects nothing if s is nil.
func readPodSelector(path *field.Path, s *metav1.LabelSelector) (labels.Selector, field.ErrorList) {
	if s == nil {
		return labels.Nothing(), nil
	}
	errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Required(path, "an empty selector would hold back every pod"))
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil && len(errs) == 0 {
		errs = append(errs, field.Invalid(path, s, err.Error()))
	}
	return selector, errs
}

// readWindow reads the hours of a window that stands at path.
func readWindow(path *field.Path, w *PriceWindow) (*price.Window, field.ErrorList) {
	var errs field.ErrorList
	// Local would differ between machines.
	place, err := time.LoadLocation(*w.TimeZone)
	if err != nil || *w.TimeZone == "" || *w.TimeZone == "Local" {
		errs = append(errs, field.Invalid(path.Child("timeZone"), *w.TimeZone,
			"want the name of a time zone such as UTC or Europe/Berlin"))
	}
	from, err := price.ParseClock(w.From)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("from"), w.From, "want "+price.AllowedClock))
	}
	to, err := price.ParseClock(w.To)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("to"), w.To, "want "+price.AllowedClock))
	}
	var days []time.Weekday
	for i, name := range w.Days {
		day := slices.Index(weekdayNames, name)
		if day < 0 {
			errs = append(errs, field.NotSupported(path.Child("days").Index(i), name, weekdayNames))
			continue
		}
		days = append(days, time.Weekday(day))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	window, err := price.NewWindow(days, from, to, place)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, fmt.Sprintf("%s-%s", w.From, w.To), err.Error())}
	}
	return window, nil
}
