// Package simulation runs the real scheduler of a configuration on an API in memory (memapi), if required on a virtual
// clock.
//
// World fills the API, starts and runs the scheduler, and records what happens to pods. Virtual runs a function on the
// virtual clock. Pin makes decisions deterministic that otherwise depend on goroutines, maps and random numbers.
//
// Replays, explain, advise, validate and the tests call it. It never connects to a cluster, and the scheduler does not
// import it.
package simulation
