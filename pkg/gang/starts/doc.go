// Package starts decides what to keep for a gang that does not fit, and for which gang something is kept.
//
// Soonest finds the nodes on which the gang starts the soonest by the known ends of pods, and when that is. Where too
// few ends are known, Choose finds the nodes on which the fewest pods have to end. Turns gives one gang at a time a
// turn and ends it.
//
// Package hold asks once a second and keeps the capacity. The package knows no Kubernetes: nodes are names with
// numbers, and the time is an argument.
package starts
