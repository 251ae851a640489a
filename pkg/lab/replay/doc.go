// Package replay runs the real scheduler of a configuration, with its queue, plugins, preemption and Permit, on a
// cluster in memory and on a virtual clock, and measures what becomes of a trace of jobs.
//
// One goroutine, the conductor, lets one thing happen at a time and waits until everything that follows has come to
// rest: a write to the API, an event of the trace, a step of the scheduling loop. So the same input, configuration and
// seed give the same result, byte for byte, except for what is measured. Package simulation pins what a real scheduler
// leaves to chance.
//
// The commands berth replay and compare call Run. It never connects to a network: signals are neutral, and a
// configuration with extenders is refused. See docs/internals/simulation.md.
package replay
