package replay

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// gangState is what of a gang is on nodes. Its pods can run when there are as many as it needs, whatever the scheduler knows of
// gangs: one that binds them one by one lets the first hold their GPUs for nothing.
type gangState struct {
	minimum int
	// ended counts members that have succeeded.
	ended   int
	held    map[*podState]*holding
	works   bool
	started bool
}

// gangOf returns the gang that the pod is in, nil for none.
func (c *cluster) gangOf(pod *v1.Pod) *gangState {
	id, spec, err := kubeview.GangOf(pod)
	if err != nil || id.Name == "" {
		return nil
	}
	g := c.gangs[id]
	if g == nil {
		g = &gangState{minimum: c.minimum(id, spec), held: map[*podState]*holding{}}
		c.gangs[id] = g
	}
	return g
}

// minimum is how many members the gang needs: what its PodGroup says, else what its pods say, else one.
func (c *cluster) minimum(id gang.ID, spec *gang.Spec) int {
	obj, ok := c.api.Get(podGroupResource, types.NamespacedName(id)).(*unstructured.Unstructured)
	if !ok {
		if spec != nil {
			return spec.Minimum.Total
		}
		return 1
	}
	group := &schedulingv1alpha1.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, group); err != nil {
		return 1
	}
	read, err := kubeview.GangSpec(group, 0)
	if err != nil {
		return max(1, int(group.Spec.MinMember))
	}
	return read.Minimum.Total
}

// joined counts a member that has a node. Starting says that the replay gave it that node.
func (c *cluster) joined(g *gangState, p *podState, starting bool) {
	p.gang = g
	if p.held == nil {
		return
	}
	g.held[p] = p.held
	c.settle(g)
	if g.works && !g.started {
		g.started = true
		if starting {
			c.record.gangsStarted++
		}
	}
}

// left counts a member that no longer has its node.
func (c *cluster) left(p *podState) {
	if g := p.gang; g != nil {
		delete(g.held, p)
		c.settle(g)
	}
}

// settle says of all members whether they can run.
func (c *cluster) settle(g *gangState) {
	g.works = len(g.held)+g.ended >= g.minimum
	for _, h := range g.held {
		if h.works != g.works {
			c.ledger.run(h, g.works)
		}
	}
}
