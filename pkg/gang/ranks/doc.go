// Package ranks gives members of a group that are alike their places in the order of their ranks, so that those that
// follow each other are near each other.
//
// The planner of gangs calls it once for a plan. It knows numbers and names only: pkg/gang/read reads the labels that
// number pods. It never changes which nodes a plan uses, only which member gets which of them.
package ranks
