package plugins_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/test/harness/require"
)

func TestPodsAreToldApartThatCostDifferently(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bill(t, nil)
		sign := func(pod *v1.Pod) string {
			return string(c.SignPod(t.Context(), pod))
		}
		base := sign(eighth("a").Obj())
		if base == "" {
			t.Fatal("an ordinary pod is not signed, which switches batching off")
		}
		if same := sign(eighth("b").Label("job", "x").Obj()); same != base {
			t.Errorf("pods that differ in name and labels are told apart:\n%s\n%s", base, same)
		}
		for name, pod := range map[string]*v1.Pod{
			"stance to spot":          eighth("a").Annotation(spotKey, "tolerate").Obj(),
			"empty stance to spot":    eighth("a").Annotation(spotKey, "").Obj(),
			"node selector for spot":  eighth("a").NodeSelector(map[string]string{karpenterLabel: "spot"}).Obj(),
			"gang":                    eighth("a").Label("scheduling.x-k8s.io/pod-group", "training").Obj(),
			"owner":                   ofDaemonSet(eighth("a"), "n"),
			"CPU and memory requests": eighth("a").Req(map[v1.ResourceName]string{"cpu": "1"}).Obj(),
		} {
			if sign(pod) == base {
				t.Errorf("pods that differ in their %s have one signature", name)
			}
		}
	})
}

func TestWhatWakesAPodThatAvoidsSpot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bill(t, windows)
		hints := map[fwk.EventResource]fwk.QueueingHintFn{}
		registered, err := c.plugin.EventsToRegister(t.Context())
		require.NoError(t, err)
		for _, e := range registered {
			hints[e.Event.Resource] = e.QueueingHintFn
		}
		spot, onDemand := priced("n", "1", karpenterLabel, "spot"), priced("n", "1")
		avoiding, tolerant, broken := eighth("p").Obj(), eighth("p").Annotation(spotKey,
			"tolerate").Obj(), eighth("p").Annotation(spotKey, "?").Obj()
		requiring := eighth("p").Annotation(spotKey, "require").Obj()
		for name, tc := range map[string]struct {
			resource fwk.EventResource
			pod      *v1.Pod
			old, new any
			want     fwk.QueueingHint
		}{
			"a new on-demand node helps a pod that avoids spot":        {fwk.Node, avoiding, nil, onDemand, fwk.Queue},
			"a new spot node does not":                                 {fwk.Node, avoiding, nil, spot, fwk.QueueSkip},
			"a new spot node helps a pod that requires one":            {fwk.Node, requiring, nil, spot, fwk.Queue},
			"a node that turns on-demand helps a pod that avoids spot": {fwk.Node, avoiding, spot, onDemand, fwk.Queue},
			"a node that stays on-demand does not": {fwk.Node, avoiding, onDemand, onDemand,
				fwk.QueueSkip},
			"no node helps a pod that cannot be understood": {fwk.Node, broken, nil, onDemand, fwk.QueueSkip},
			"a pod that now tolerates spot is worth another try": {fwk.TargetPod, tolerant, avoiding, tolerant,
				fwk.Queue},
			"a pod that is mended is worth another try": {fwk.TargetPod, avoiding, broken, avoiding,
				fwk.Queue},
			"a pod whose stance is as before is not": {fwk.TargetPod, avoiding, avoiding,
				eighth("p").Label("a", "b").Obj(), fwk.QueueSkip},
			"a pod that is broken in another way is not": {fwk.TargetPod, broken, broken,
				eighth("p").Annotation(spotKey, "!").Obj(), fwk.QueueSkip},
			"a pod whose window is mended is worth another try": {fwk.TargetPod, avoiding,
				eighth("p").Annotation(windowKey, "noon").Obj(), avoiding, fwk.Queue},
			"a pod that waits no longer for a window is": {fwk.TargetPod, avoiding,
				eighth("p").Annotation(windowKey, "night").Annotation(deadlineKey, "x").Obj(), avoiding, fwk.Queue},
			"a pod of another label that no window selects is not": {fwk.TargetPod, avoiding,
				eighth("p").Label("patience", "none").Obj(), avoiding, fwk.QueueSkip},
			"an object of a kind that is not expected queues to be careful": {fwk.Node, avoiding, nil, avoiding, fwk.Queue},
		} {
			got, err := hints[tc.resource](klog.Logger{}, tc.pod, tc.old, tc.new)
			if got != tc.want {
				t.Errorf("%s: got %v (%v), want %v", name, got, err, tc.want)
			}
		}
	})
}
