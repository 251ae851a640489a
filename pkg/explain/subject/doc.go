// Package subject finds what is to be explained: the pods that stand for an object which is named as kubectl names it,
// and those that a file of manifests would make.
//
// The command berth explain asks it before it calls explain. It only looks through a snapshot of a cluster.
package subject
