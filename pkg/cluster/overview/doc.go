// Package overview is what a person who watches a cluster sees of it: which GPUs are idle, used, stranded or out of
// order, what waits and why, which gangs there are, and what that costs.
//
// Book owns the objects that it is fed with, by a Watcher or by a test, and answers with a Cluster. The terminal view,
// the dashboard and the JSON output show that. It changes nothing in the cluster, and keeps of each object only the
// fields that it reads.
package overview
