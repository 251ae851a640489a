// Package plugins_test tests what plugins do on a real API server, as a user sees it. The scheduler runs as a process.
//
// Each control plane has a configuration of the binary, and tests share it side by side, on nodes and in namespaces of
// their own.
package plugins_test

import (
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m, box.Lasting()...) }

// TestShippedWithKubelets has the shipped configuration, with kubelets and controllers.
//
//nolint:tparallel // its parts follow each other on one control plane
func TestShippedWithKubelets(t *testing.T) {
	t.Parallel()
	b := box.Start(t, "", sandbox.Options{})
	testTenants(t, b)
}

// TestShipped has the shipped configuration without kubelets: pods stay as they are bound.
func TestShipped(t *testing.T) {
	t.Parallel()
	b := box.Start(t, "", sandbox.Options{NoKubelet: true})
	box.SideBySide(t, map[string]func(*testing.T){
		"addresses": func(t *testing.T) { testAddresses(t, b) },
		"owners":    func(t *testing.T) { testOwners(t, b) },
		"hami":      func(t *testing.T) { testHAMi(t, b) },
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

// gangConfig is the stock scheduler with Coscheduling, which keeps no nodes for gangs.
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
      - {name: Coscheduling, args: {reservation: {maxNodesPercent: 0}}}
      - {name: PodTopologySpread, args: {defaultingType: List}}
`

// TestGangs has Coscheduling alone.
//
//nolint:tparallel // its parts follow each other on one control plane
func TestGangs(t *testing.T) {
	t.Parallel()
	testRefusals(t, box.Start(t, "", sandbox.Options{NoKubelet: true, SchedulerConfig: write(t, gangConfig)}))
}

// write returns a file of the scheduler's configuration.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler-config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
