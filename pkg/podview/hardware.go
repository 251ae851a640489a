package podview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// FailingHardware says which hardware of the node fails by what the node reports, as a clause without a subject;
// nothing if none does. The node is about to go, or its kubelet offers some of the devices of a kind, but not all. With
// none on offer, their plugin may be away.
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

// isExtended reports whether the resource is one of devices, and not one of Kubernetes itself.
func isExtended(name v1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}
