package gpuaware

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// siblings counts the pods that a pod works with by the NVLink domain that they run in.
type siblings struct {
	byClique map[string]int
	total    int
}

// groupOf names the pods that a pod works with: its gang, or the pods of the same controller. It is empty for a pod on
// its own.
func groupOf(gangs *kubeview.Gangs, pod *v1.Pod) string {
	if id := gangs.Of(pod); id != (gang.ID{}) {
		return "gang/" + id.String()
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return "controller/" + string(owner.UID)
	}
	return ""
}

// readSiblings looks for the pod's siblings on the nodes that NVLink connects with others. It returns nil where there
// are no such nodes, which is nearly everywhere, and for pods on their own.
func (p *Plugin) readSiblings(pod *v1.Pod, s *podState) (*siblings, error) {
	if s.request.Count == 0 || !p.cluster.learner.hasCliques() {
		return nil, nil
	}
	group := groupOf(p.cluster.gangs, pod)
	if group == "" {
		return nil, nil
	}
	infos, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	found := &siblings{byClique: map[string]int{}}
	for _, info := range infos {
		v := p.cluster.views.of(p.cluster.views.Of(info.Node()), info, p.handle.SnapshotSharedLister())
		if v.node.GPUs() == 0 && v.node.Clique == "" {
			continue
		}
		for _, other := range info.GetPods() {
			if o := other.GetPod(); o.Namespace == pod.Namespace && groupOf(p.cluster.gangs, o) == group {
				found.byClique[v.node.Clique]++
				found.total++
			}
		}
	}
	return found, nil
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
