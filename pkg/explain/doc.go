// Package explain says why a pod is where it is, or where it would go: it runs the real plugins of a scheduler
// configuration over a snapshot of a cluster, for one pod and every node, and keeps what each of them said.
//
// The command berth explain calls Pod with a snapshot, or Past with the decisions that a scheduler remembers. The
// plugins decide; this package only asks them and puts their answers into sentences and tables. It never binds or
// writes.
package explain
