// Package steps is the arithmetic of gangs that grow by whole steps: a ladder of minima at which such a gang may run,
// with its own minimum at the foot.
//
// The ledger of gangs asks for the next step of a gang that has started, and the planner where to end what fits. The
// view of gangs reads Size from an annotation with Parse.
//
// The package knows numbers and names only and keeps no state.
package steps
