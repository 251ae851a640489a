// Package obstacle says why a gang or one of its members does not start now.
//
// An Obstacle is a value: a cause with its names and amounts. The ledger of gangs finds most of them, plugins and
// gang/waiting the rest. They are put into words where a user reads them, and compared and counted by Kind before.
//
// The package imports nothing of ours but words for numbers.
package obstacle
