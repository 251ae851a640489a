package gpuaware

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/objects"
)

// Links that appear help a pod that needs them. What GPUAware refuses for want of room may be refused by stock filters
// as well: when these would not any more, preemption may help.
func TestANodeThatOpensWakesPodsThatMayEvictThere(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()))
	events, err := h.plugin.EventsToRegister(t.Context())
	if err != nil || !slices.ContainsFunc(events, func(e fwk.ClusterEventWithHint) bool {
		return e.Event.Resource == fwk.Node && e.Event.ActionType&fwk.UpdateNodeAnnotation != 0
	}) {
		t.Errorf("a change of a node's annotations wakes no pod: %v, %v", events, err)
	}
	pod := func(change ...func(*v1.Pod)) *v1.Pod {
		p := podObject("p", strs{"nvidia.com/gpu": "4"}, nil)
		for _, f := range change {
			f(p)
		}
		return p
	}
	node := func(change ...func(*v1.Node)) *v1.Node {
		n := gpuNodeObject("n", 4, "")
		for _, f := range change {
			f(n)
		}
		return n
	}
	inZone := func(zone string) func(*v1.Node) { return func(n *v1.Node) { n.Labels[v1.LabelTopologyZone] = zone } }
	cordoned := func(n *v1.Node) { n.Spec.Unschedulable = true }
	tainted := func(effect v1.TaintEffect) func(*v1.Node) {
		return func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "example.com/drained", Effect: effect}} }
	}
	wantsZone := func(p *v1.Pod) { p.Spec.NodeSelector = strs{v1.LabelTopologyZone: "a"} }
	withVolume := func(p *v1.Pod) {
		p.Spec.Volumes = []v1.Volume{{Name: "v",
			VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "v"}}}}
	}
	tolerant := func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} }
	never := func(p *v1.Pod) { p.Spec.PreemptionPolicy = ptr.To(v1.PreemptNever) }
	tooLarge := func(p *v1.Pod) { *p = *podObject("p", strs{"nvidia.com/gpu": "8"}, nil) }
	linked := func(p *v1.Pod) {
		*p = *podObject("p", strs{"nvidia.com/gpu": "2"}, strs{"berth.dev/gpu-interconnect": "required"})
	}
	says := func(links string, more ...string) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Annotations = objects.Pairs[string](append(more, "berth.dev/gpu-links", `{"links":[`+links+`]}`))
		}
	}
	const bridges = `[0,1,"NV12"],[2,3,"NV12"]`
	for name, tc := range map[string]struct {
		pod           *v1.Pod
		before, after *v1.Node
		want          fwk.QueueingHint
	}{
		"links appear": {pod(linked), node(says("")), node(says(bridges)), fwk.Queue},
		"links vanish": {pod(linked), node(says(bridges)), node(says("")), fwk.QueueSkip},
		"another annotation appears": {pod(linked), node(says(bridges)), node(says(bridges, "example.com/a", "b")),
			fwk.QueueSkip},
		"it is uncordoned": {pod(), node(cordoned), node(), fwk.Queue},
		"it is uncordoned, for a pod that tolerated that":    {pod(tolerant), node(cordoned), node(), fwk.QueueSkip},
		"it is uncordoned, for a pod that evicts nobody":     {pod(never), node(cordoned), node(), fwk.QueueSkip},
		"it is uncordoned, for a pod that it never can hold": {pod(tooLarge), node(cordoned), node(), fwk.QueueSkip},
		"it is cordoned": {pod(), node(), node(cordoned), fwk.QueueSkip},
		"a taint goes":   {pod(), node(tainted(v1.TaintEffectNoExecute)), node(), fwk.Queue},
		"a taint goes that did not keep pods away": {pod(), node(tainted(v1.TaintEffectPreferNoSchedule)), node(),
			fwk.QueueSkip},
		"it comes into the zone that the pod wants":    {pod(wantsZone), node(inZone("b")), node(inZone("a")), fwk.Queue},
		"it leaves the zone that the pod wants":        {pod(wantsZone), node(inZone("a")), node(inZone("b")), fwk.QueueSkip},
		"it moves, for a pod that is at home anywhere": {pod(), node(inZone("b")), node(inZone("a")), fwk.QueueSkip},
		"it moves, for a pod with a volume":            {pod(withVolume), node(inZone("b")), node(inZone("a")), fwk.Queue},
		"it comes into the zone and is cordoned": {pod(wantsZone), node(inZone("b")), node(inZone("a"), cordoned),
			fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hint := process.On(fwk.Node, fwk.Update, h.plugin.afterNodeChange).QueueingHintFn
			got, err := hint(h.logger, tc.pod, tc.before, tc.after)
			if err != nil || got != tc.want {
				t.Errorf("hint %v, error %v, want %v", got, err, tc.want)
			}
		})
	}
}
