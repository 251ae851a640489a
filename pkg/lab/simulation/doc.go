// Package simulation runs the real scheduler of a configuration on an API in memory (memapi) and, where time matters,
// on a virtual clock.
//
// NewScheduler makes the scheduler, Virtual runs a function on the virtual clock, and Settled also lets the function
// wait until everything has come to rest. Pin takes away what a real scheduler leaves to goroutines, maps and random
// numbers: the order of equal nodes, of writes at one instant, and of the candidates of preemption.
//
// Replays, explanations, advice, validation and the scenarios of the tests call it. It knows nothing of them or of
// traces, never asks a cluster, and no production code knows of it.
package simulation
