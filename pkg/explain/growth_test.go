package explain

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/tables"
	"berth.dev/berth/pkg/wellknown"
)

func TestAGangSaysByWhatStepsItGrows(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]string{
		"double": "beyond that, it runs with twice as many members, four times, eight times and so on",
		"4":      "beyond that, it grows by 4 members at a time",
	} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			first, objects := inRacks(map[string]string{wellknown.GrowByKey: size}, true)
			e := ask(t, first, objects...)
			if e.Gang == nil || string(e.Gang.GrowsBy) != size {
				t.Fatalf("the gang is %+v, want one that grows by %s", e.Gang, size)
			}
			if page := shown(t, e, tables.Screen{Width: 120}, 0); !strings.Contains(page, want) {
				t.Errorf("the page does not say %q:\n%s", want, page)
			}
		})
	}
}

func TestAGangThatHasGrownSaysHowFar(t *testing.T) {
	t.Parallel()
	objects := []runtime.Object{node("n", "8")}
	var waits *v1.Pod
	for i := range 6 {
		p := pod(fmt.Sprint("p", i), "", "1", 0)
		if i < 4 {
			p.Spec.NodeName = "n"
		}
		p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "g",
			"pod-group.scheduling.sigs.k8s.io/min-available": "2"}
		p.Annotations = map[string]string{wellknown.GrowByKey: "double"}
		objects, waits = append(objects, p), p
	}
	e := ask(t, waits, objects...)
	if e.Gang == nil || e.Gang.StepsTaken != 1 {
		t.Fatalf("the gang is %+v, want one that has taken a step", e.Gang)
	}
	page := shown(t, e, tables.Screen{Width: 120}, 0)
	for _, want := range []string{"eight times and so on: it has taken 1 step",
		"waits until 4 more can start together, and 2 exist"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}
