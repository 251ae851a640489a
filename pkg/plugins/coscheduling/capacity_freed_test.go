package coscheduling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/members"
)

func TestWhoKeepsItsNomination(t *testing.T) {
	t.Parallel()
	pod := func(nominated, gang string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Status: v1.PodStatus{NominatedNodeName: nominated}}
		if gang != "" {
			gangview.Join(p, gang)
		}
		return p
	}
	for name, test := range map[string]struct {
		pod  *v1.Pod
		code fwk.Code
		want bool
	}{
		"an error":                    {pod: pod("n", ""), code: fwk.Error, want: true},
		"an error without nomination": {pod: pod("", ""), code: fwk.Error},
		"no node that fits":           {pod: pod("n", ""), code: fwk.Unschedulable},
		"an error of a member":        {pod: pod("n", "g"), code: fwk.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := keepsNomination(&members.Directory{}, test.pod, fwk.NewStatus(test.code)); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestBoundElsewhere(t *testing.T) {
	t.Parallel()
	pod := func(uid, node, nominated string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: v1.PodSpec{NodeName: node}, Status: v1.PodStatus{NominatedNodeName: nominated}}
	}
	for name, test := range map[string]struct {
		old, now *v1.Pod
		want     bool
	}{
		"bound to another node":                         {old: pod("a", "", "n0"), now: pod("a", "n1", "n0"), want: true},
		"bound to another node, the nomination cleared": {old: pod("a", "", "n0"), now: pod("a", "n1", ""), want: true},
		"bound to the node for which it was nominated":  {old: pod("a", "", "n0"), now: pod("a", "n0", "")},
		"never nominated":                               {old: pod("a", "", ""), now: pod("a", "n1", "")},
		"nominated elsewhere, which the scheduler sees": {old: pod("a", "", "n0"), now: pod("a", "", "n1")},
		"bound before":                                  {old: pod("a", "n1", "n0"), now: pod("a", "n1", "")},
		"another pod of that name":                      {old: pod("a", "", "n0"), now: pod("b", "n1", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := boundElsewhere(test.old, test.now); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
