// Package starts decides what to keep for a gang that does not fit, and for which gang something is kept.
//
// Soonest says on which nodes the gang starts the soonest, by the ends of pods that are known, and when that is. Where
// too few are known, Choose says on which nodes the fewest pods have to end. Turns gives one gang at a time a turn and
// says when it ends.
//
// Package hold asks, once a second, and keeps what is chosen. The package knows no Kubernetes: nodes are
// names with numbers, and the time is an argument.
package starts
