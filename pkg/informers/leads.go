package informers

import (
	"sync/atomic"

	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	unelected atomic.Bool
	elected   atomic.Pointer[func() bool]
)

// Elected notes how to ask whether this process leads. Without it the metrics of the whole process are gathered to read the leader
// election's gauge, which a standby does every two seconds: for thousands of nodes their bill alone takes much of a core.
func Elected(leads func() bool) { elected.Store(&leads) }

// WithoutElection notes that this process never runs a leader election. Otherwise all its metrics are gathered to find out, which
// for thousands of nodes costs more than what a simulation does besides.
func WithoutElection() { unelected.Store(true) }

// Leads tells whether this process leads, and whether there is an election: by what Elected was given or, in a program that has not
// called it, by the leader election's gauge. Those that do not lead run all informers as well, and must not write.
func Leads() (leads, running bool) {
	if ask := elected.Load(); ask != nil {
		return (*ask)(), true
	}
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
