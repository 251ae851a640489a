// Package signals reads live signals from a Prometheus server in the background: how busy the GPUs are, how much of
// their memory is used, which of them are faulty (dcgm-exporter), and what nodes cost (OpenCost, Karpenter).
//
// A reader asks one aggregate query a signal, once an interval, and publishes what it learned as an immutable snapshot
// behind an atomic pointer. A scheduling cycle loads the pointer and looks up nodes; it never waits for a server, and a
// server that is down, slow or wrong costs it nothing. What is known carries its age and counts until it is too old;
// use that is measured on too few nodes counts for none. Trouble is told by one log line a change of state and by
// metrics named berth_signal_….
//
// Clocks: queries are evaluated at the server's time, ages are differences of the server's times, and only those are
// subtracted from the scheduler's clock, so the two need not agree.
package signals
