// Package explain says why a pod is on its node, or where it would be scheduled: it runs the real plugins of a
// scheduler configuration on a snapshot of a cluster, for one pod and every node, and reports their answers.
//
// The command berth explain calls Pod with a snapshot, or Past with the decisions that a scheduler has recorded. The
// plugins decide; this package turns their answers into sentences and tables. It never writes to a cluster.
package explain
