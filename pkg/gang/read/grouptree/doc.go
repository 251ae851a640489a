// Package grouptree knows the trees of Kubernetes' own groups: which PodGroup is in which tree of CompositePodGroups,
// what a tree asks for, and the text in the annotation berth.dev/groups by which a PodGroup declares groups within its
// gang.
//
// Forest is told of the objects by package status, in any order, and asked in which gang a pod is. It never reads an
// object itself, and has no clock.
package grouptree
