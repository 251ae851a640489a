package podview

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
				t.Errorf("class %q, %s; want %q, %s", got, message, tc.want, tc.bad)
			}
		})
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
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        sla.Objective
		bad         string
	}{
		"nothing":     {nil, sla.Objective{}, ""},
		"a latency":   {map[string]string{wellknown.SLOLatencyKey: "250"}, sla.Objective{LatencyMs: 250}, ""},
		"a small one": {map[string]string{wellknown.SLOLatencyKey: "0.5"}, sla.Objective{LatencyMs: 0.5}, ""},
		"a throughput": {map[string]string{wellknown.SLOThroughputKey: "1000000000000"}, sla.Objective{Throughput: 1e12},
			""},
		"both": {map[string]string{wellknown.SLOLatencyKey: "20", wellknown.SLOThroughputKey: "1000"},
			sla.Objective{LatencyMs: 20, Throughput: 1000}, ""},
		"a unit":            {map[string]string{wellknown.SLOLatencyKey: "250ms"}, sla.Objective{}, "250ms"},
		"nothing at all":    {map[string]string{wellknown.SLOLatencyKey: ""}, sla.Objective{}, ""},
		"zero":              {map[string]string{wellknown.SLOThroughputKey: "0"}, sla.Objective{}, "0"},
		"too small to tell": {map[string]string{wellknown.SLOThroughputKey: "0." + zeros(400) + "1"}, sla.Objective{}, "0."},
		"negative":          {map[string]string{wellknown.SLOLatencyKey: "-1"}, sla.Objective{}, "-1"},
		"infinite":          {map[string]string{wellknown.SLOThroughputKey: "Inf"}, sla.Objective{}, "Inf"},
		"an exponent":       {map[string]string{wellknown.SLOThroughputKey: "1e3"}, sla.Objective{}, "1e3"},
		"too much":          {map[string]string{wellknown.SLOLatencyKey: "1000000001"}, sla.Objective{}, "1000000001"},
		"two points":        {map[string]string{wellknown.SLOLatencyKey: "1.2.3"}, sla.Objective{}, "1.2.3"},
		"one good, one bad": {map[string]string{wellknown.SLOLatencyKey: "20", wellknown.SLOThroughputKey: "fast"},
			sla.Objective{}, "fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := PodObjective(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objective (-want +got):\n%s", diff)
			}
			wantBad := tc.want.None() && len(tc.annotations) > 0
			if (bad != nil) != wantBad || bad != nil && len(tc.bad) > 2 && bad.Value[:2] != tc.bad[:2] {
				t.Errorf("bad value %v, want one about %q", bad, tc.bad)
			}
		})
	}
}

func zeros(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return string(b)
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
