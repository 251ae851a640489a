// Package ranks gives members of a group that are alike their places in the order of their ranks, so that those that
// follow each other are near each other.
//
// It knows numbers and names only; which labels number a pod is the business of pkg/gang/read, and what fits where that
// of pkg/topology and pkg/gang/plan. The planner of gangs calls it once for a plan. It changes no placement: the places
// are given, and only who takes which of them is decided here.
package ranks
