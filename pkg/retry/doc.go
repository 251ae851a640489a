// Package retry decides which gang is tried next, and when.
//
// It owns when a gang that does not fit is tried again (Queue), and which of several gangs whose plans take long plans
// next (Pace). The loop of the Coscheduling plugin feeds it with what happened and asks it for the next gang; the
// cycles of leaders tell it how long their plans took. It never looks at the cluster, never decides whether a gang
// fits, and knows no Kubernetes: time is an argument.
package retry
