package overview

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/plural"
)

// growth says how far a gang has grown that has started, empty if it does not grow by steps.
func (g *gangEntry) growth() string {
	if g.group == nil {
		return ""
	}
	spec, err := gangview.Spec(g.group, 0)
	levels, wrong := gangview.TopologyOf(g.group, &v1.Pod{})
	ladder := steps.Ladder{Minimum: spec.Minimum, By: levels.Steps}
	if err != nil || wrong != nil || !ladder.Climbs() {
		return ""
	}
	total, roles := 0, map[string]int{}
	for _, m := range g.members {
		if phase := m.pod.Status.Phase; phase == v1.PodSucceeded || phase != v1.PodFailed && m.pod.Spec.NodeName != "" {
			total++
			roles[gangview.Role(m.pod, g.group)]++
		}
	}
	taken := ladder.Reached(total, func(role string) int { return roles[role] })
	return fmt.Sprintf("grows by %s, %s taken", ladder.By, plural.Of(max(taken, 0), "step"))
}
