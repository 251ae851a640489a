package plugins_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"berth.dev/berth/test/harness/objects"
)

// It does not run beside others, for a process has one bill for each profile.
func TestMetricsAreTheBillOfTheCluster(t *testing.T) {
	// Idle: 6 + 8 GPUs at two dollars and 4 at one; stranded: the last 4, which have no core left.
	want := `# HELP berth_cluster_cost_dollars_per_hour [ALPHA] Price of all nodes by the prices of a profile, by type of capacity.
# TYPE berth_cluster_cost_dollars_per_hour gauge
berth_cluster_cost_dollars_per_hour{capacity_type="on-demand",profile="cost-optimized-scheduler"} 45.952
berth_cluster_cost_dollars_per_hour{capacity_type="reserved",profile="cost-optimized-scheduler"} 0
berth_cluster_cost_dollars_per_hour{capacity_type="spot",profile="cost-optimized-scheduler"} 14.976
# HELP berth_idle_gpu_cost_dollars_per_hour [ALPHA] Price of the GPUs that no pod has.
# TYPE berth_idle_gpu_cost_dollars_per_hour gauge
berth_idle_gpu_cost_dollars_per_hour{profile="cost-optimized-scheduler"} 32
# HELP berth_nodes_in_use_cost_dollars_per_hour [ALPHA] Price of the nodes that some pod keeps from being given back.
# TYPE berth_nodes_in_use_cost_dollars_per_hour gauge
berth_nodes_in_use_cost_dollars_per_hour{profile="cost-optimized-scheduler"} 37.952
# HELP berth_nodes_without_price [ALPHA] Nodes whose price no source knows.
# TYPE berth_nodes_without_price gauge
berth_nodes_without_price{profile="cost-optimized-scheduler"} 1
# HELP berth_spot_cost_ratio [ALPHA] Share of the price of all nodes that is spot capacity.
# TYPE berth_spot_cost_ratio gauge
berth_spot_cost_ratio{profile="cost-optimized-scheduler"} 0.2457983193277311
# HELP berth_stranded_gpu_cost_dollars_per_hour [ALPHA] Price of the idle GPUs that no pod can use for want of CPU or memory on their nodes.
# TYPE berth_stranded_gpu_cost_dollars_per_hour gauge
berth_stranded_gpu_cost_dollars_per_hour{profile="cost-optimized-scheduler"} 4
`
	names := []string{
		"berth_cluster_cost_dollars_per_hour",
		"berth_idle_gpu_cost_dollars_per_hour",
		"berth_nodes_in_use_cost_dollars_per_hour",
		"berth_nodes_without_price",
		"berth_spot_cost_ratio",
		"berth_stranded_gpu_cost_dollars_per_hour",
	}
	synctest.Test(t, func(t *testing.T) {
		// Each node: the host is worth 6.976 dollars, the GPUs the rest.
		bill(t, nil, priced("used", "22.976"), eighth("a").Node("used").Obj(), eighth("b").Node("used").Obj(),
			priced("empty", "22.976"),
			priced("spot", "14.976", karpenterLabel, "spot"), objects.Pod("hog", "cpu", "96", "nvidia.com/gpu",
				"4").Node("spot").Obj(),
			priced("unknown", ""))
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	})
	// That scheduler has ended.
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(""), names...); err != nil {
		t.Error(err)
	}
}
