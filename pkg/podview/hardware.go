package podview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// FailingHardware is the message about a node that is about to go or has failed devices, as a clause without a subject;
// empty for other nodes. Devices have failed if some, but not all, are allocatable: if none is, their plugin may be
// down.
func FailingHardware(node *v1.Node) string {
	switch taint := LeavingTaint(node); {
	case taint != "":
		return "has the taint " + taint
	case node.DeletionTimestamp != nil:
		return "is being deleted"
	}
	for _, name := range slices.Sorted(maps.Keys(node.Status.Capacity)) {
		all, works := node.Status.Capacity[name], node.Status.Allocatable[name]
		if isExtended(name) && !works.IsZero() && works.Cmp(all) < 0 {
			return fmt.Sprintf("offers %s of %s %s", works.String(), all.String(), name)
		}
	}
	return ""
}

// isExtended reports whether the resource is not one of Kubernetes itself.
func isExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}
