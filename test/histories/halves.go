package main

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/invariants"
)

// torn is the fault of a group within a gang that is in several zones.
const torn = "a group that shares a zone is in several"

// torn returns a fault if members of one half of a gang are in several zones.
func (w *world) torn(teams map[string]*team) *invariants.Fault {
	for _, name := range slices.Sorted(maps.Keys(teams)) {
		zones := map[string]string{}
		for _, pod := range teams[name].bound {
			node, here := w.api.Get(nodes, types.NamespacedName{Name: pod.Spec.NodeName}).(*v1.Node)
			if half := pod.Labels[wellknown.GroupKey]; here && half != "" {
				zone := node.Labels[v1.LabelTopologyZone]
				if first, known := zones[half]; known && first != zone {
					return &invariants.Fault{Kind: torn, Detail: fmt.Sprintf("gang %s: %s is in %s and %s", name, half, first, zone)}
				}
				zones[half] = zone
			}
		}
	}
	return nil
}

// halvesStart reports whether a gang of two groups starts, each in one of the zones. zoneOf tells them by node.
func (w *world) halvesStart(t *team, rooms []*vacancy, zones map[string]bool, zoneOf map[string]string) bool {
	for first := range zones {
		for second := range zones {
			in := map[string]string{"half-0": first, "half-1": second}
			elsewhere := slices.ContainsFunc(t.bound, func(pod *v1.Pod) bool {
				return zoneOf[pod.Spec.NodeName] != in[invariants.RoleOf(pod)]
			})
			if !elsewhere && w.startsIn(t, rooms, func(pod *v1.Pod) string { return in[invariants.RoleOf(pod)] }) {
				return true
			}
		}
	}
	return false
}
