// Package obstacle says why a gang or one of its members does not start now.
//
// An Obstacle is a value: a cause with its names and amounts. The ledger of gangs finds most obstacles, plugins and
// gang/waiting the others. Until a user reads one, it is compared and counted by Kind.
//
// The package imports nothing of ours but words for numbers.
package obstacle
