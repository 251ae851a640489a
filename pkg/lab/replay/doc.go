// Package replay runs the real scheduler of a configuration, with its queue, plugins, preemption and Permit, on a
// cluster in memory and on a virtual clock, and measures what becomes of a trace of jobs.
//
// One goroutine, the conductor, does one thing at a time and waits until all its effects are complete: a write to the
// API, an event of the trace, a step of the scheduling loop. So the same input, configuration and seed give the same
// result, byte for byte, except for measured times. Package simulation removes the other sources of randomness.
//
// The commands berth replay and compare call Run. It never connects to a network: signals are neutral, and a
// configuration with extenders is refused.
package replay
