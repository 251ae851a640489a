// Package simulation runs the real scheduler of a configuration on an API in memory (memapi) and, where time matters,
// on a virtual clock.
//
// World is the one way to do so: it fills the API, starts the scheduler, lets it run, and tells what has happened.
// Virtual runs a function on the virtual clock. Pin takes away what a real scheduler leaves to goroutines, maps and
// random numbers: the order of equal nodes, of writes at one instant, and of the candidates of preemption.
//
// Replays, explanations, advice, validation and the scenarios of the tests call it. It knows nothing of them or of
// traces, never asks a cluster, and no production code knows of it.
package simulation
