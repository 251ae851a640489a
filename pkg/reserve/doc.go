// Package reserve decides what to keep for a gang that does not fit, and whose turn it is to have something kept.
//
// Choose says which rooms to keep on which nodes, so that the gang fits as soon as the pods there have ended. Turns
// gives one gang at a time a turn and says when it ends, Watch finds nodes that are kept for nothing.
//
// The reservation package asks, once a second, and keeps what is chosen. The package knows no Kubernetes and no run
// times, for which see starttime: nodes are names with numbers, and the time is an argument.
package reserve
