package loop

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestBoundElsewhere(t *testing.T) {
	t.Parallel()
	pod := func(uid, node, nominated string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: v1.PodSpec{NodeName: node},
			Status: v1.PodStatus{NominatedNodeName: nominated}}
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
