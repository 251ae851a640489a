package gpudemand

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestAPodCountsThatSomeNodeLetsIn(t *testing.T) {
	t.Parallel()
	taint := func(value string, effect v1.TaintEffect) []v1.Taint {
		return []v1.Taint{{Key: "gpu", Value: value, Effect: effect}}
	}
	tolerates := &v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{{Key: "gpu", Value: "a"}}}}
	s := newTaintSets()
	for _, step := range []struct {
		what             string
		do               func()
		plain, tolerates bool
	}{
		{"no node is known", func() {}, true, true},
		{"both nodes are tainted", func() {
			s.set("n1", taint("a", v1.TaintEffectNoSchedule))
			s.set("n2", taint("a", v1.TaintEffectNoSchedule))
		}, false, true},
		{"one of two nodes of a taint has another", func() { s.set("n2", taint("b", v1.TaintEffectNoExecute)) }, false, true},
		{"the node that is tolerated goes", func() { s.remove("n1"); s.remove("n1") }, false, false},
		{"the taint keeps no pod off", func() { s.set("n2", taint("b", v1.TaintEffectPreferNoSchedule)) }, true, true},
		{"no node is left", func() { s.remove("n2") }, true, true},
	} {
		step.do()
		if got := s.admit(&v1.Pod{}); got != step.plain {
			t.Errorf("when %s, a pod without tolerations counts: %v, want %v", step.what, got, step.plain)
		}
		if got := s.admit(tolerates); got != step.tolerates {
			t.Errorf("when %s, a pod that tolerates a counts: %v, want %v", step.what, got, step.tolerates)
		}
	}
	if len(s.byNode)+len(s.sets) != 0 {
		t.Errorf("taints of nodes that are gone are kept: %v", s)
	}
}
