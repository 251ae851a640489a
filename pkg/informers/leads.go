package informers

import (
	"sync/atomic"

	"k8s.io/component-base/metrics/legacyregistry"
)

var unelected atomic.Bool

// WithoutElection notes that this process never runs a leader election. Otherwise all its metrics are gathered to find out, which
// for thousands of nodes costs more than what a simulation does besides.
func WithoutElection() { unelected.Store(true) }

// Leads reads the leader election's gauge of this process: whether it leads, and whether there is an election. Those that do
// not lead run all informers as well, and must not write.
func Leads() (leads, running bool) {
	if unelected.Load() {
		return false, false
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return false, true
	}
	for _, f := range families {
		if f.GetName() != "leader_election_master_status" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetGauge().GetValue() == 1 {
				return true, true
			}
		}
		return false, true
	}
	return false, false
}
