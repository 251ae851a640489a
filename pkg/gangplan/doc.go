// Package gangplan says what is lacking if too few members of a gang fit.
//
// Shortfall words a result that is not enough: how much of the gang fits, and what keeps the rest off the nodes.
//
// The planner and what waits fill in a result. The package knows no Kubernetes: nodes are names.
package gangplan
