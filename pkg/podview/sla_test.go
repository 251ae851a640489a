package podview

import (
	"math"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

func TestSLAClass(t *testing.T) {
	t.Parallel()
	order := sla.NewOrder([]sla.Class{
		{Name: "interactive", PriorityClasses: []string{"online", "production"}},
		{Name: "nightly", PriorityClasses: []string{"production"}},
		{Name: "batch"},
	}, nil)
	for name, tc := range map[string]struct {
		order             *sla.Order
		label, annotation string
		priorityClass     string
		want              string
		bad               string
	}{
		"a pod that says nothing":                  {order: order},
		"one whose PriorityClass a class lists":    {order: order, priorityClass: "online", want: "interactive"},
		"one whose PriorityClass two classes list": {order: order, priorityClass: "production", want: "interactive"},
		"one that names the second of them": {order: order, priorityClass: "production", label: "nightly",
			want: "nightly"},
		"one that names a class for all by a label": {order: order, label: "batch", want: "batch"},
		"one that names it by an annotation":        {order: order, annotation: "batch", want: "batch"},
		"one that names it by both":                 {order: order, annotation: "batch", label: "batch", want: "batch"},
		"one whose PriorityClass is overruled":      {order: order, priorityClass: "online", label: "batch", want: "batch"},
		"one without classes in the scheduler":      {priorityClass: "online"},
		"one that names two classes": {order: order, annotation: "batch", label: "nightly",
			bad: `pod annotation berth.dev/sla-class: "batch" is not "nightly", which the pod's label of that key says`},
		"one whose PriorityClass the class does not admit": {order: order, label: "nightly", priorityClass: "online",
			bad: `pod label berth.dev/sla-class: "nightly" is not one of the classes open to pods of PriorityClass "online": "interactive", "batch"`},
		"one that names an unknown class": {order: order, annotation: "gold",
			bad: `pod annotation berth.dev/sla-class: "gold" is not one of the classes open to pods of PriorityClass "": "batch"`},
		"one that names a class where there are none": {label: "gold",
			bad: `pod label berth.dev/sla-class: "gold" is not a class of this scheduler: none is open to pods of PriorityClass ""`},
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{PriorityClassName: tc.priorityClass}}
		if tc.label != "" {
			pod.Labels = map[string]string{wellknown.SLAClassKey: tc.label}
		}
		if tc.annotation != "" {
			pod.Annotations = map[string]string{wellknown.SLAClassKey: tc.annotation}
		}
		class, bad := SLAClass(tc.order, pod)
		got, message := "", ""
		if class != nil {
			got = class.Name
		}
		if bad != nil {
			message = bad.Error()
		}
		if got != tc.want || message != tc.bad {
			t.Errorf("%s: class %q, %s; want %q, %s", name, got, message, tc.want, tc.bad)
		}
	}
}

func TestAnEmptyNameOfAClassIsAName(t *testing.T) {
	t.Parallel()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wellknown.SLAClassKey: ""}}}
	if _, bad := SLAClass(nil, pod); bad == nil {
		t.Error("a label without a value was passed over")
	}
}

func TestPodObjective(t *testing.T) {
	t.Parallel()
	type says = map[string]string
	const latency, throughput = wellknown.SLOLatencyKey, wellknown.SLOThroughputKey
	for name, tc := range map[string]struct {
		annotations says
		want        sla.Objective
		bad         string
	}{
		"nothing":      {nil, sla.Objective{}, ""},
		"a latency":    {says{latency: "0.5"}, sla.Objective{LatencyMs: 0.5}, ""},
		"a throughput": {says{throughput: "1000000000000"}, sla.Objective{Throughput: 1e12}, ""},
		"both": {says{latency: "20", throughput: "1000"}, sla.Objective{LatencyMs: 20, Throughput: 1000},
			""},
		"a unit":            {says{latency: "250ms"}, sla.Objective{}, "250ms"},
		"nothing at all":    {says{latency: ""}, sla.Objective{}, ""},
		"zero":              {says{throughput: "0"}, sla.Objective{}, "0"},
		"too small to tell": {says{throughput: "0." + strings.Repeat("0", 400) + "1"}, sla.Objective{}, "0."},
		"negative":          {says{latency: "-1"}, sla.Objective{}, "-1"},
		"infinite":          {says{throughput: "Inf"}, sla.Objective{}, "Inf"},
		"an exponent":       {says{throughput: "1e3"}, sla.Objective{}, "1e3"},
		"too much":          {says{latency: "1000000001"}, sla.Objective{}, "1000000001"},
		"two points":        {says{latency: "1.2.3"}, sla.Objective{}, "1.2.3"},
		"one good, one bad": {says{latency: "20", throughput: "fast"}, sla.Objective{}, "fast"},
	} {
		got, bad := PodObjective(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
		if wantBad := tc.want.None() && len(tc.annotations) > 0; got != tc.want || (bad != nil) != wantBad ||
			bad != nil && !strings.HasPrefix(bad.Value, tc.bad) {
			t.Errorf("%s: %v, %v; want %v, and a bad value %q: %t", name, got, bad, tc.want, tc.bad, wantBad)
		}
	}
}

// FuzzPodObjective has anything stand in the annotations: an objective is within its bounds, or there is a bad value.
func FuzzPodObjective(f *testing.F) {
	for _, seed := range []string{"250", "0.5", "", "-1", "1e400", "0x10p0", "NaN", ".", "1_000", "00000000000000000001",
		"٣"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, latency, throughput string) {
		o, bad := PodObjective(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.SLOLatencyKey: latency,
				wellknown.SLOThroughputKey: throughput}}})
		valid := o.LatencyMs > 0 && o.LatencyMs <= maxLatencyMs && o.Throughput > 0 && o.Throughput <= maxThroughput
		if (bad == nil) != valid || math.IsNaN(o.LatencyMs+o.Throughput) || bad != nil && !o.None() {
			t.Errorf("%q and %q: %v, %v", latency, throughput, o, bad)
		}
	})
}
