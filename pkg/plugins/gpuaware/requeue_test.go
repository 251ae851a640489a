package gpuaware

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

func TestWhatANodeReportsWakesThePodsThatItHelps(t *testing.T) {
	t.Parallel()
	const links = "berth.dev/gpu-links"
	const bridges = `{"links":[[0,1,"NV12"],[2,3,"NV12"]]}`
	linked := podObject("linked", strs{"nvidia.com/gpu": "2"}, strs{"berth.dev/gpu-interconnect": "required"})
	for name, tc := range map[string]struct {
		pod           *v1.Pod
		before, after strs
		want          fwk.QueueingHint
	}{
		"links appear": {linked, strs{links: `{"links":[]}`}, strs{links: bridges}, fwk.Queue},
		"links vanish": {linked, strs{links: bridges}, strs{links: `{"links":[]}`}, fwk.QueueSkip},
		"an annotation of another": {linked, strs{links: bridges}, strs{links: bridges, "example.com/a": "b"},
			fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()))
			before, after := gpuNodeObject("n", 4, ""), gpuNodeObject("n", 4, "")
			before.Annotations, after.Annotations = tc.before, tc.after
			got, err := h.plugin.afterNodeChange(h.logger, tc.pod, before, after)
			if err != nil || got != tc.want {
				t.Errorf("hint %v, error %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestNodeAnnotationsAreAmongTheEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()))
	events, err := h.plugin.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Event.Resource == fwk.Node && e.Event.ActionType&fwk.UpdateNodeAnnotation != 0 {
			return
		}
	}
	t.Error("a change of a node's annotations wakes no pod")
}
