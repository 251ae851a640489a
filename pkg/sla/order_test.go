package sla

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	from := func(p int32) *int32 { return &p }
	within := func(d time.Duration) *time.Duration { return &d }
	batch := Class{Name: "batch", Deadline: 4 * time.Hour}
	for name, tc := range map[string]struct {
		classes  []Class
		ageing   *Ageing
		priority int32
		class    *Class
		own      *time.Duration
		want     Place
	}{
		"no classes and no ageing": {nil, nil, 7, nil, nil, Place{}},
		"a class": {[]Class{batch}, nil, 7, &Class{Deadline: time.Minute}, nil,
			Place{Wait: time.Minute}},
		"no class has the longest deadline": {[]Class{{Deadline: time.Minute}, batch}, nil, 7, nil, nil,
			Place{Wait: 4 * time.Hour}},
		"a class without a deadline has it, too": {[]Class{{Deadline: time.Minute}, batch}, nil, 7, &Class{}, nil,
			Place{Wait: 4 * time.Hour}},
		"ageing": {nil, &Ageing{PerHour: 10, UpTo: 100}, 75, nil, nil,
			Place{Ages: true, Wait: 150 * time.Minute}},
		"the highest priority that ages": {nil, &Ageing{PerHour: 10, UpTo: 100}, 100, nil, nil, Place{Ages: true}},
		"a priority above it":            {nil, &Ageing{PerHour: 10, UpTo: 100}, 101, nil, nil, Place{}},
		"a class above it has its deadline": {[]Class{batch}, &Ageing{PerHour: 10, UpTo: 100}, 101, &batch, nil,
			Place{Wait: 4 * time.Hour}},
		"a class that ages from elsewhere": {nil, &Ageing{PerHour: 10, UpTo: 100}, 0, &Class{AgeFrom: from(80)}, nil,
			Place{Ages: true, Wait: 2 * time.Hour}},
		"a class that ages from above the highest": {nil, &Ageing{PerHour: 10, UpTo: 100}, 0, &Class{AgeFrom: from(120)}, nil,
			Place{Ages: true, Wait: -2 * time.Hour}},
		"more hours than there are": {[]Class{batch}, &Ageing{PerHour: 1, UpTo: 1_000_000_000}, math.MinInt32, &batch, nil,
			Place{Ages: true, Wait: longestWait + 4*time.Hour}},
		"more hours back than there are": {nil, &Ageing{PerHour: 1, UpTo: -2_000_000_000}, math.MinInt32,
			&Class{AgeFrom: from(1_000_000_000)}, nil,
			Place{Ages: true, Wait: -longestWait}},
		"a class that lets pods have deadlines": {[]Class{batch}, nil, 7,
			&Class{Deadline: time.Hour, EarliestOwn: time.Minute}, within(2 * time.Hour), Place{Wait: 2 * time.Hour}},
		"but not earlier than it says": {[]Class{batch}, nil, 7, &Class{Deadline: time.Hour, EarliestOwn: time.Minute},
			within(-time.Hour), Place{Wait: time.Minute}},
		"a pod of it that says nothing": {[]Class{batch}, nil, 7, &Class{Deadline: time.Hour, EarliestOwn: time.Minute}, nil,
			Place{Wait: time.Hour}},
		"a class that does not": {[]Class{batch}, nil, 7, &Class{Deadline: time.Hour}, within(time.Minute),
			Place{Wait: time.Hour}},
		"no class does": {[]Class{batch}, nil, 7, nil, within(time.Minute), Place{Wait: 4 * time.Hour}},
		"a deadline in another millennium, and an age of centuries": {nil, &Ageing{PerHour: 1, UpTo: 1_000_000_000},
			math.MinInt32, &Class{EarliestOwn: time.Minute}, within(math.MaxInt64),
			Place{Ages: true, Wait: longestWait + longestOwn}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, NewOrder(tc.classes, tc.ageing).Place(tc.priority, tc.class, tc.own)); diff != "" {
				t.Errorf("place (-want +got):\n%s", diff)
			}
		})
	}
}

// A higher priority is never due later, by any amount that int32 holds.
func TestAHigherPriorityIsDueNoLater(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := NewOrder(nil, &Ageing{PerHour: rapid.Int32Range(1, math.MaxInt32).Draw(t, "per hour"), UpTo: math.MaxInt32})
		a, b := rapid.Int32().Draw(t, "a"), rapid.Int32().Draw(t, "b")
		if low, high := o.Place(min(a, b), nil, nil), o.Place(max(a, b), nil, nil); low.Wait < high.Wait || low.Wait < 0 ||
			high.Wait < 0 {
			t.Fatalf("priority %d waits %s, priority %d waits %s", min(a, b), low.Wait, max(a, b), high.Wait)
		}
	})
}

func TestClassesAreFoundByNameAndByPriorityClass(t *testing.T) {
	t.Parallel()
	o := NewOrder([]Class{{Name: "a", PriorityClasses: []string{"p"}, Timeout: time.Minute},
		{Name: "b", PriorityClasses: []string{"p", "q"}}, {Name: "c"}}, nil)
	for _, tc := range []struct {
		name string
		got  *Class
		want string
	}{
		{"by name", o.Class("b", "p"), "b"}, {"by name, not open", o.Class("a", "q"), ""},
		{"by name, open to all", o.Class("c", ""), "c"},
		{"an unknown name", o.Class("d", "p"), ""}, {"the first that lists it", o.ClassFor("p"), "a"},
		{"the second lists it", o.ClassFor("q"), "b"},
		{"nobody lists it", o.ClassFor("r"), ""}, {"no PriorityClass", o.ClassFor(""), ""},
	} {
		got := ""
		if tc.got != nil {
			got = tc.got.Name
		}
		if got != tc.want {
			t.Errorf("%s: class %q, want %q", tc.name, got, tc.want)
		}
	}
	if diff := cmp.Diff([][]string{{"a", "b", "c"}, {"a"}, nil},
		[][]string{o.Names(), o.Timed(), (*Order)(nil).Timed()}); diff != "" {
		t.Errorf("names, those with a timeout, and those of no order (-want +got):\n%s", diff)
	}
}
