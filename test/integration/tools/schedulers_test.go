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
		"the stock role is enough to schedule, and what it lacks is said": stockRoleIsEnough,
		"a scheduler that lacks a right runs without what needs it":       schedulersWithoutARight,
		"no pod is preempted while budgets cannot be read":                nothingPreemptedWithoutBudgets,
		"the static pod starts with what worked last":                     staticPodStartsWithLastGood,
		"a wrong configuration leaves the one in force":                   wrongConfigurationsAreLeft,
		"a change loses no pod and binds none twice":                      changesLoseNoPod,
		"the leader election has its metric":                              leaderElectionHasItsMetric,
		"a configuration that does not start is taken back":               unstartableIsTakenBack,
		"a container that starts with a wrong file takes the copy":        wrongFileTakesTheCopy,
		"the leader of two replicas restarts after the standby":           leaderStartsLater,
		"our scheduler asks a scorer of the user's own":                   asksAScorer,
		"a stock scheduler places pods as the extender says":              placesAsTheExtenderSays,
		"an extender that lacks a right answers without what needs it":    extendersWithoutARight,
		"an agent has the rights of the manifests and no others":          agentsHaveTheirRights,
		"the API server refuses what validate finds":                      serverRefusesWhatIsFound,
		"a secret is not readable in a dump unless the header says so":    secretsAreNotInADump,
	} {
		parts[name] = func(t *testing.T) { run(t, shared) }
	}
	box.SideBySide(t, parts)
}
