// Package grouptree knows the trees of native groups: which PodGroup is in which tree of CompositePodGroups, what a
// tree declares, and the text of the annotation berth.dev/groups.
//
// Package status sets the objects in a Forest, in any order, and package read asks it for the gang of a pod. It never
// reads an object, and has no clock.
package grouptree
