package schedulerconfig

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/test/harness/require"
)

func TestTheLevelsOfTheNetworkAreThoseOfTheProfileOrTheDefaultOnes(t *testing.T) {
	t.Parallel()
	load := func(c *Configuration, err error) *Configuration {
		t.Helper()
		require.NoError(t, err)
		return c
	}
	profile := func(name, level string) string {
		return "- {schedulerName: " + name + ", pluginConfig: [{name: NetworkTopology, args: {levels: [{name: l, labels: [" +
			level + ", topology.kubernetes.io/zone], microseconds: 9}]}}]}\n"
	}
	given := load(Parse("f", []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"profiles:\n"+profile("other", "site/rail")+profile("berth-scheduler", "site/row"))))
	for _, tc := range []struct {
		name          string
		configuration *Configuration
		labels        map[string]string
		want          string
	}{
		{"EKS", load(Shipped()), map[string]string{"topology.k8s.aws/network-node-layer-3": "c",
			"topology.k8s.aws/network-node-layer-2": "b", v1.LabelTopologyZone: "z"}, "network-node-layer-3=c"},
		{"EKS, with four layers", load(Shipped()), map[string]string{"topology.k8s.aws/network-node-layer-3": "c",
			"topology.k8s.aws/network-node-layer-4": "d"}, "network-node-layer-4=d"},
		{"GKE", load(Shipped()), map[string]string{"cloud.google.com/gce-topology-block": "a",
			"cloud.google.com/gce-topology-subblock": "b"}, "gce-topology-subblock=b"},
		{"GKE, a block alone", load(Shipped()), map[string]string{"cloud.google.com/gce-topology-block": "a"},
			"gce-topology-block=a"},
		{"OKE", load(Shipped()), map[string]string{"oci.oraclecloud.com/rdma.local_block_id": "b"}, "rdma.local_block_id=b"},
		{"a rack", load(Load(Stock)), map[string]string{"topology.kubernetes.io/rack": "r"}, "rack=r"},
		{"a zone alone", load(Load(Stock)), map[string]string{v1.LabelTopologyZone: "z", v1.LabelHostname: "n"}, "zone=z"},
		{"levels of a file", given, map[string]string{"site/row": "1", "site/rail": "2", "topology.kubernetes.io/rack": "r"},
			"row=1"},
		{"none of them", given, map[string]string{"site/rail": "2", "topology.kubernetes.io/rack": "r"}, ""},
	} {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
		if got := tc.configuration.NetworkLevels().Narrowest(node).String(); got != tc.want {
			t.Errorf("%s: the narrowest domain is %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestPricesAreThoseOfAProfileThatScoresByThem(t *testing.T) {
	t.Parallel()
	profile := func(name, dollars, plugins string) string {
		return "- {schedulerName: " + name + ", plugins: {" + plugins + "}, pluginConfig: [{name: CostOptimized, args: " +
			"{prices: [{requirements: [{key: kind, operator: Exists}], pricePerHour: '" + dollars + "'}]}}]}\n"
	}
	const scores = "multiPoint: {enabled: [{name: CostOptimized}]}"
	c, err := Parse("f", []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"profiles:\n"+profile("filters", "1", scores+", score: {disabled: [{name: CostOptimized}]}")+
		profile("first", "2", scores)+profile("second", "3", scores)))
	require.NoError(t, err)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kind": "x"}}}
	for name, want := range map[string]price.MicroDollars{"filters": 2e6, "first": 2e6, "second": 3e6} {
		priceOf, _, err := c.Prices(name)
		require.NoError(t, err)
		if got, known := priceOf(node); !known || got != want {
			t.Errorf("profile %s: the node costs %d, known %t, want %d", name, got, known, want)
		}
	}
}
