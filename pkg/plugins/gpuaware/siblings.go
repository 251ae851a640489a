package gpuaware

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
)

// siblings counts the pods that a pod works with by the NVLink domain that they run in.
type siblings struct {
	byClique map[string]int
	total    int
}

// groupOf names the pods that a pod works with: its gang, or the pods of the same controller. It is empty for a pod on
// its own.
func groupOf(gangs *gangview.Gangs, pod *v1.Pod) string {
	if id := gangs.Of(pod); id != (gang.ID{}) {
		return "gang/" + id.String()
	}
	if owner := podview.ControllerOf(pod); owner != nil {
		return "controller/" + string(owner.UID)
	}
	return ""
}

// kin are the pods with GPUs that work with others, and the nodes they were given. It follows the informer, and pods
// that are assumed from Reserve on. It is safe for concurrent use.
type kin struct {
	mu      sync.RWMutex
	byGroup map[string]map[types.UID]string
	groups  map[types.UID]string
}

func newKin() *kin {
	return &kin{byGroup: map[string]map[types.UID]string{}, groups: map[types.UID]string{}}
}

// placed records the node of a pod in a group. The group of a pod does not change.
func (k *kin) placed(uid types.UID, group, node string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byGroup[group] == nil {
		k.byGroup[group] = map[types.UID]string{}
	}
	k.byGroup[group][uid] = node
	k.groups[uid] = group
}

// gone forgets a pod. It is idempotent.
func (k *kin) gone(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	group, ok := k.groups[uid]
	if !ok {
		return
	}
	delete(k.groups, uid)
	if delete(k.byGroup[group], uid); len(k.byGroup[group]) == 0 {
		delete(k.byGroup, group)
	}
}

// nodes are those of the group's pods, one entry a pod, without the pod itself.
func (k *kin) nodes(group string, self types.UID) []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	nodes := make([]string, 0, len(k.byGroup[group]))
	for uid, node := range k.byGroup[group] {
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
	if group := groupOf(c.gangs, pod); group != "" {
		c.kin.placed(pod.UID, pod.Namespace+"/"+group, node)
	}
}

// readSiblings looks up where the pod's siblings are. It returns nil where NVLink connects no nodes with each other,
// which is nearly everywhere, and for pods on their own.
func (p *Plugin) readSiblings(pod *v1.Pod, s *podState) *siblings {
	if s.request.Count == 0 || !p.cluster.learner.hasCliques() {
		return nil
	}
	group := groupOf(p.cluster.gangs, pod)
	if group == "" {
		return nil
	}
	return p.cluster.learner.byClique(p.cluster.kin.nodes(pod.Namespace+"/"+group, pod.UID))
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
