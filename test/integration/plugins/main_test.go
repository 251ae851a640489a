// Package plugins_test tests what plugins do on a real API server, as a user sees it. The scheduler runs as a process.
//
// Each control plane has a configuration of the binary, and tests share it side by side, on nodes and in namespaces of
// their own.
package plugins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) { leak.Main(m, box.Lasting()...) }

// TestShippedWithKubelets has the shipped configuration, with kubelets and controllers.
//
//nolint:tparallel // what depends on all pods that the scheduler has seen runs alone on it
func TestShippedWithKubelets(t *testing.T) {
	t.Parallel()
	b := box.Start(t, "", sandbox.Options{})
	// Which node is best depends on the pods that the scheduler has placed so far, on whichever nodes.
	t.Run("claims", func(t *testing.T) { testClaims(t, b) })
	box.SideBySide(t, map[string]func(*testing.T){
		"shares":               func(t *testing.T) { testShares(t, b) },
		"tenants":              func(t *testing.T) { testTenants(t, b) },
		"gangs of controllers": func(t *testing.T) { testControllers(t, b) },
	})
}

// TestShipped has the shipped configuration without kubelets: pods stay as they are bound.
//
//nolint:tparallel // what measures the whole scheduler runs alone on it
func TestShipped(t *testing.T) {
	t.Parallel()
	b := box.Start(t, "", sandbox.Options{NoKubelet: true})
	box.SideBySide(t, map[string]func(*testing.T){
		"addresses": func(t *testing.T) { testAddresses(t, b) },
		"policies":  func(t *testing.T) { testPolicies(t, b) },
		"owners":    func(t *testing.T) { testOwners(t, b) },
		"hami":      func(t *testing.T) { testHAMi(t, b) },
	})
	// These measure the scheduler as a whole, so nothing runs beside them.
	t.Run("what pods said is forgotten when they are gone", func(t *testing.T) { testMemory(t, b) })
	t.Run("pods that can never run do not move where others go", func(t *testing.T) { testMix(t, b) })
}

// TestNativeGroups has the shipped configuration and the groups of the scheduler's core.
func TestNativeGroups(t *testing.T) {
	t.Parallel()
	b := box.Start(t, "", sandbox.Options{NoKubelet: true,
		FeatureGates: []string{"GenericWorkload=true"}, RuntimeConfig: []string{"scheduling.k8s.io/v1beta1=true"}})
	box.SideBySide(t, map[string]func(*testing.T){
		"shares":   func(t *testing.T) { testNativeShares(t, b) },
		"licenses": func(t *testing.T) { testNativeLicenses(t, b) },
	})
}

// TestHandOvers has no scheduler but those that the test starts.
//
//nolint:tparallel // each hand-over needs the lease for itself
func TestHandOvers(t *testing.T) {
	t.Parallel()
	testHandOvers(t, box.Start(t, "", sandbox.Options{NoKubelet: true, NoScheduler: true,
		Controllers: []string{"clusterrole-aggregation-controller"}}))
}

// gangConfig is the stock scheduler with Coscheduling, whose args are filled in.
const gangConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: berth-scheduler, resourceNamespace: kube-system}
clientConnection: {qps: 2000, burst: 4000}
profiles:
  - schedulerName: gang-scheduler
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}
    pluginConfig:
      - &coscheduling {name: Coscheduling, args: {%s}}
      - {name: PodTopologySpread, args: {defaultingType: List}}
`

// TestGangs keeps no nodes for gangs.
//
//nolint:tparallel // what measures the whole scheduler runs alone on it
func TestGangs(t *testing.T) {
	t.Parallel()
	config := write(t, fmt.Sprintf(gangConfig, "reservation: {maxNodesPercent: 0}"))
	b := box.Start(t, "", sandbox.Options{NoKubelet: true, SchedulerConfig: config})
	// It counts the plans of the scheduler, so nothing runs beside it.
	t.Run("one gang does not stop scheduling", func(t *testing.T) { testOneGang(t, b) })
	box.SideBySide(t, map[string]func(*testing.T){
		"refusals":    func(t *testing.T) { testRefusals(t, b) },
		"daemon pods": func(t *testing.T) { testDaemonPods(t, b) },
	})
}

// TestLimits has service levels, and keeps nodes for gangs within limits.
//
//nolint:tparallel // what measures the whole scheduler runs alone on it
func TestLimits(t *testing.T) {
	t.Parallel()
	figures := newFigures(t)
	config := write(t, fmt.Sprintf(gangConfig+serviceProfile, limitedReservation+", "+serviceLevels, figures.URL))
	b := box.Start(t, "", sandbox.Options{NoKubelet: true, SchedulerConfig: config})
	t.Run("service levels", func(t *testing.T) { testServiceLevels(t, b, figures) })
	// Limits are shares of all nodes.
	t.Run("reservations", func(t *testing.T) { testReservations(t, b) })
}

// write returns a file of the scheduler's configuration.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler-config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
