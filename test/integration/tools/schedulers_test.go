package tools_test

import (
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// TestBesideOtherSchedulers has the tests that start schedulers and extenders of their own, or none. They share a
// control plane without one.
func TestBesideOtherSchedulers(t *testing.T) {
	t.Parallel()
	shared := box.Start(t, extenderNodes, sandbox.Options{NoKubelet: true, NoScheduler: true})
	parts := map[string]func(*testing.T){}
	for name, run := range map[string]func(*testing.T, *box.Box){
		"the stock roles suffice to schedule, and what they lack is said": stockRolesAreEnough,
		"a scheduler that lacks a right says so, and ends if it is vital": schedulersWithoutARight,
		"a replica with a wrong configuration leaves the leader":          wrongConfigurationsLeaveTheLeader,
		"a rollout loses no pod and binds none twice":                     rolloutsLoseNoPod,
		"the leader election has its metric":                              leaderElectionHasItsMetric,
		"a stock scheduler places pods as the extender says":              placesAsTheExtenderSays,
		"an extender that lacks a right to read is not ready":             extendersWithoutARight,
		"an agent has the rights of the manifests and no others":          agentsHaveTheirRights,
	} {
		parts[name] = func(t *testing.T) { run(t, shared) }
	}
	box.SideBySide(t, parts)
}
