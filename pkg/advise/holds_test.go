package advise

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/schedulerconfig"
)

func TestAPlanHoldsForAsLongAsItsRoomIsFree(t *testing.T) {
	t.Parallel()
	c, err := schedulerconfig.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	objects := []runtime.Object{node("a", "8", "1"), node("b", "8", "1"), pod("x", "a", "5", bare), pod("y", "a", "1"),
		pod("z", "b", "6", bare), pod("p", "", "3")}
	_, plan := ask(t, Target{}, objects...).FirstPlan()
	if moved(plan) != "y from a to b; p on a" {
		t.Fatalf("the plan is %q", moved(plan))
	}
	ending := func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Finalizers = &metav1.Time{Time: now}, new(int64), []string{"x/y"}
	}
	older := func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour)) }
	for _, tt := range []struct {
		name string
		more []runtime.Object
		gone string
		want string // part of the error
	}{
		{"nothing has changed", nil, "", ""},
		{"a new pod has taken the room of the replacement", []runtime.Object{pod("new", "b", "2", bare)}, "",
			"what replaces pod default/y gets no node"},
		{"a pod that has waited longer would take the room that is made", []runtime.Object{pod("new", "", "3", older)}, "",
			"the work that the plan is for does not start"},
		{"a pod takes other room than that of the plan", []runtime.Object{pod("new", "b", "1", bare)}, "", ""},
		{"what is in the way is ending", []runtime.Object{pod("new", "b", "2", bare, ending)}, "", ""},
		{"a pod that is to move has gone", nil, "y", "pod default/y is not on a any more"},
		{"what the plan is for has gone", nil, "p", "does not start"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			present := slices.DeleteFunc(append(slices.Clone(objects), tt.more...), func(obj runtime.Object) bool {
				p, ok := obj.(*v1.Pod)
				return ok && p.Name == tt.gone
			})
			err := Holds(context.WithoutCancel(t.Context()), Question{Configuration: c, Objects: present, Now: now}, plan)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
