// Package subject finds the pods to explain: those of an object that is named as for kubectl, or those that a file of
// manifests would create.
//
// The command berth explain calls it before it calls explain. It searches a snapshot of a cluster and runs no
// scheduler.
package subject
