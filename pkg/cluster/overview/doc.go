// Package overview describes a cluster for people: which GPUs are idle, used, stranded or unavailable, what waits and
// why, which gangs there are, and what that costs.
//
// Store keeps the objects of a cluster, read once or watched, and answers with a Cluster. The commands status, jobs,
// top and dashboard show it. It runs no scheduler and changes nothing in the cluster.
package overview
