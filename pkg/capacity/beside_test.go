package capacity

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"pgregory.net/rapid"
)

// askBeside compares what is left besides what is kept with what there is if the pods for which it is kept were bound,
// and those that give way had gone.
func (m *roomModel) askBeside(t *rapid.T, live []int) {
	names := slices.Sorted(maps.Keys(m.r.nodes))
	if len(names) == 0 {
		return
	}
	var kept []*Kept
	with := &naiveRoom{nodes: m.r.nodes, claimed: m.r.claimed, pods: maps.Clone(m.r.pods)}
	leaves := func(pod *v1.Pod) bool { return corev1helpers.PodPriority(pod) < 1 }
	if len(m.kept) > 0 && rapid.Bool().Draw(t, "the same is kept") {
		kept = m.kept
	} else {
		for i := range rapid.IntRange(1, 3).Draw(t, "kept") {
			pod := drawPod(t)
			pod.UID, pod.Spec.NodeName = apitypes.UID(fmt.Sprint("kept-", i)), rapid.SampledFrom(names).Draw(t, "node")
			pod.Status.Phase = v1.PodPending
			k := &Kept{Node: pod.Spec.NodeName, Pod: pod}
			if rapid.Bool().Draw(t, "pods give way") {
				k.Leaves = leaves
			}
			kept = append(kept, k)
		}
	}
	m.kept = kept
	for _, k := range kept {
		if k.Leaves != nil {
			maps.DeleteFunc(with.pods, func(uid apitypes.UID, p *v1.Pod) bool {
				return m.r.pods[uid] != nil && p.Spec.NodeName == k.Node && leaves(p)
			})
		}
		if m.r.nodes[k.Node] != nil {
			with.pods[k.Pod.UID] = k.Pod
		}
	}
	for _, i := range live {
		pod, total, racks, full := m.pods[i], 0, map[string]int{}, 0
		for _, node := range m.r.nodes {
			if m.r.why(pod, node) != "" {
				continue
			}
			now, besides := m.r.slots(pod, node, false), with.slots(pod, node, false)
			total += min(now, besides)
			racks[node.Labels["rack"]] += min(now, besides)
			if now > 0 && besides == 0 && m.r.unoffered(pod) == "" {
				full++
			}
		}
		delete(racks, "")
		most := 0
		for _, n := range racks {
			most = max(most, n)
		}
		need := []Need{{Shape: shapeOf(pod), Count: 1 << 30}}
		same(t, fmt.Sprintf("best of shape %d besides", i), m.x.BestBeside(need, nil, kept), min(total, 1<<30))
		same(t, fmt.Sprintf("best of a rack for shape %d besides", i), m.x.BestBeside(need, []string{"rack"}, kept),
			min(most, 1<<30))
		off, kind := 0, (KeptFor{}).Kind()
		for _, cause := range m.x.Causes(shapeOf(pod), nil, kept, nil) {
			if cause.Kind == kind {
				off += cause.Nodes
			}
		}
		same(t, fmt.Sprintf("nodes kept off shape %d", i), off, full)
	}
}
