// Package signals reads live signals from a Prometheus server in the background: how busy and how full GPUs are, which
// of them are faulty (dcgm-exporter), what nodes cost (OpenCost, Karpenter), and what they achieve.
//
// A reader asks one aggregate query a signal, once an interval, and publishes an immutable snapshot. Cycles of
// GPUAware, CostOptimized and SLAAware look nodes up in it and never wait for a server. Values count until they are too
// old; use that is measured on too few nodes counts for no node. Trouble is one log line and metrics berth_signal_….
//
// Queries are evaluated at the server's time, and only differences of its times meet the scheduler's clock: the two
// need not agree.
package signals
