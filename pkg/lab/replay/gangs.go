package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/plural"
)

// gangState are the members of a gang on nodes. They can run when there are enough of them. With a scheduler that binds
// the members one by one, the GPUs of the first ones are idle until then.
type gangState struct {
	minimum int
	// ended counts members that have succeeded.
	ended       int
	allocations map[*podState]*allocation
	canRun      bool
	started     bool
}

// gangOf returns the gang that the pod is in, nil for none.
func (c *cluster) gangOf(pod *v1.Pod) *gangState {
	m, err := c.trees.GangOf(pod)
	if err != nil || m.ID.Name == "" {
		return nil
	}
	id := m.ID
	if c.undeclared(pod, id) {
		return nil
	}
	g := c.gangs[id]
	if g == nil {
		g = &gangState{minimum: c.minimum(id, m.Minimum), allocations: map[*podState]*allocation{}}
		c.gangs[id] = g
	}
	return g
}

// undeclared reports whether the pod names a PodGroup that does not exist, so that the number of members is unknown.
func (c *cluster) undeclared(pod *v1.Pod, id gang.ID) bool {
	if pod.Labels[schedulingv1alpha1.PodGroupLabel] != id.Name || c.gangs[id] != nil {
		return false
	}
	missing := c.world.API.Get(podGroupResource, types.NamespacedName(id)) == nil
	if missing {
		if c.ungrouped[id] == nil {
			c.ungrouped[id] = sets.New[types.UID]()
		}
		c.ungrouped[id].Insert(pod.UID)
	}
	return missing
}

// notes describe how the replay deviates from the input.
func (c *cluster) notes() []string {
	var notes []string
	if len(c.foreign) > 0 {
		pods := 0
		var names []string
		for _, name := range slices.Sorted(maps.Keys(c.foreign)) {
			pods += c.foreign[name]
			names = append(names, fmt.Sprintf("%s %d", name, c.foreign[name]))
		}
		notes = append(notes, fmt.Sprintf(
			"%s of schedulers that the configuration does not have (%s) %s as if of the profile %s",
			plural.Of(pods, "pod"), shortList(names), plural.Choose(pods, "is placed", "are placed"), c.profile))
	}
	if len(c.ungrouped) > 0 {
		pods := 0
		var names []string
		for id, of := range c.ungrouped {
			pods += len(of)
			names = append(names, id.String())
		}
		slices.Sort(names)
		notes = append(notes, fmt.Sprintf(
			"%s a PodGroup that does not exist (%s) and %s of no gang: Coscheduling leaves such pods pending, "+
				"other schedulers place them one by one", plural.Of(pods, "pod")+plural.Choose(pods, " names", " name"),
			shortList(names),
			plural.Choose(pods, "is", "are")))
	}
	return notes
}

// shortList joins the first names.
func shortList(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// minimum is how many members the gang needs, by its PodGroup, else by its pods, else one.
func (c *cluster) minimum(id gang.ID, byPods int) int {
	obj, ok := c.world.API.Get(podGroupResource, types.NamespacedName(id)).(*unstructured.Unstructured)
	if !ok {
		return max(1, byPods)
	}
	group := &schedulingv1alpha1.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, group); err != nil {
		return 1
	}
	read, err := read.Spec(group, 0)
	if err != nil {
		return max(1, int(group.Spec.MinMember))
	}
	return read.Minimum.Total
}

// joined counts a member that has a node. Starting is false for a node that it had from the start.
func (c *cluster) joined(g *gangState, p *podState, starting bool) {
	p.gang = g
	if p.allocation == nil {
		return
	}
	g.allocations[p] = p.allocation
	c.settle(g)
	if g.canRun && !g.started {
		g.started = true
		if starting {
			c.record.gangsStarted++
		}
	}
}

// left counts a member that no longer has its node.
func (c *cluster) left(p *podState) {
	if g := p.gang; g != nil {
		delete(g.allocations, p)
		c.settle(g)
	}
}

// settle updates whether the members can run.
func (c *cluster) settle(g *gangState) {
	g.canRun = len(g.allocations)+g.ended >= g.minimum
	for _, a := range g.allocations {
		if a.canRun != g.canRun {
			c.ledger.setCanRun(a, g.canRun)
		}
	}
}
