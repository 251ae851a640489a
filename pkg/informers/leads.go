package informers

import "k8s.io/component-base/metrics/legacyregistry"

// Leads reads the leader election's gauge of this process: whether it leads, and whether there is an election. Those that do
// not lead run all informers as well, and must not write.
func Leads() (leads, running bool) {
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
