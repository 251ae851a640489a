package gpuaware

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpudemand"
)

// siblings counts the pods that a pod works with by the NVLink domain that they run in.
type siblings struct {
	byClique map[string]int
	total    int
}

// groupMembers are the pods with GPUs that work with others, and the nodes they were given. It follows the informer,
// and pods that are assumed from Reserve on. It is safe for concurrent use.
type groupMembers struct {
	mu      sync.RWMutex
	byGroup map[string]map[types.UID]string
	groups  map[types.UID]string
}

func newGroupMembers() *groupMembers {
	return &groupMembers{byGroup: map[string]map[types.UID]string{}, groups: map[types.UID]string{}}
}

// placed records the node of a pod in a group. The group of a pod does not change.
func (m *groupMembers) placed(uid types.UID, group, node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byGroup[group] == nil {
		m.byGroup[group] = map[types.UID]string{}
	}
	m.byGroup[group][uid] = node
	m.groups[uid] = group
}

// gone forgets a pod. It is idempotent.
func (m *groupMembers) gone(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	group, ok := m.groups[uid]
	if !ok {
		return
	}
	delete(m.groups, uid)
	if delete(m.byGroup[group], uid); len(m.byGroup[group]) == 0 {
		delete(m.byGroup, group)
	}
}

// nodes are those of the group's pods, one entry a pod, without the pod itself.
func (m *groupMembers) nodes(group string, self types.UID) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	nodes := make([]string, 0, len(m.byGroup[group]))
	for uid, node := range m.byGroup[group] {
		if uid != self {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// settled records that a pod has a node, or is to get it, where others may look for their siblings.
func (c *cluster) settled(pod *v1.Pod, node string) {
	if len(pod.Spec.ResourceClaims) == 0 && !c.views.keys.MayUseGPU(pod) {
		return // NVLink does nothing for it
	}
	if group := gpudemand.GroupOf(c.gangs, pod); group != "" {
		c.members.placed(pod.UID, pod.Namespace+"/"+group, node)
	}
}

// readSiblings looks up where the pod's siblings are. It returns nil where NVLink connects no nodes with each other,
// which is nearly everywhere, and for pods on their own.
func (p *Plugin) readSiblings(pod *v1.Pod, s *podState) *siblings {
	if s.request.Count == 0 || !p.cluster.learner.HasCliques() {
		return nil
	}
	group := gpudemand.GroupOf(p.cluster.gangs, pod)
	if group == "" {
		return nil
	}
	byClique, total := p.cluster.learner.ByClique(p.cluster.members.nodes(pod.Namespace+"/"+group, pod.UID))
	return &siblings{byClique: byClique, total: total}
}

// apart is the part of the siblings that NVLink does not reach from a node in that domain.
func (s *siblings) apart(clique string) float64 {
	if s == nil || s.total == 0 {
		return 0
	}
	if clique == "" {
		return 1
	}
	return float64(s.total-s.byClique[clique]) / float64(s.total)
}
