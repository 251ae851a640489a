package tools_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// unequalPrices are two nodes of different prices.
const unequalPrices = `shapes:
- {name: cheap, count: 1, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "4"}, annotations: {berth.dev/price-per-hour: "2.50"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "4"}}
- {name: dear, count: 1, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "4"}, annotations: {berth.dev/price-per-hour: "9.50"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "4"}}
`

// saysWhyItDecided asks the scheduler for its reasons, as one who may know them and as one who may not.
func saysWhyItDecided(t *testing.T, cluster *box.Box) {
	request := v1.ResourceList{"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
		Spec: v1.PodSpec{SchedulerName: "berth-scheduler",
			Containers: []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: request,
				Limits: request}}}}}
	cluster.Create(t, pod)
	cluster.Bound(t, "p", "")
	atDecision := func(args ...string) string {
		t.Helper()
		return mustBerth(t, append([]string{"explain", "--at-decision", "--kubeconfig=" + cluster.Kubeconfig()}, args...)...)
	}
	// What would be chosen now is another matter: the cheap node is full.
	all := pod.DeepCopy()
	all.Name = "all"
	all.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("3")
	all.Spec.Containers[0].Resources.Limits = all.Spec.Containers[0].Resources.Requests
	all.Spec.NodeName = "cheap-0"
	cluster.Create(t, all)
	var then struct {
		Winner  string `json:"winner"`
		Verdict string `json:"verdict"`
		Nodes   []struct {
			Name   string `json:"name"`
			Scores []struct {
				Plugin string `json:"plugin"`
				Raw    int64  `json:"raw"`
				Cost   *struct {
					Total float64 `json:"total"`
				} `json:"cost"`
			} `json:"scores"`
		} `json:"nodes"`
	}
	require.NoError(t, json.Unmarshal([]byte(atDecision("pod/p", "-o", "json")), &then))
	if then.Winner != "cheap-0" || len(then.Nodes) != 2 ||
		!strings.HasPrefix(then.Verdict, "cheap-0 wins: it costs $2.50 per hour") {
		t.Errorf("got %+v, want that cheap-0 won of two nodes for $2.50 per hour", then)
	}
	for _, n := range then.Nodes {
		for _, s := range n.Scores {
			if s.Plugin == "CostOptimized" && (s.Cost == nil || int64(s.Cost.Total*1e6+0.5) != s.Raw) {
				t.Errorf("node %s: the raw score %d and the cost %v do not agree", n.Name, s.Raw, s.Cost)
			}
		}
	}

	config, err := cluster.SchedulerConfig()
	require.NoError(t, err)
	anyone, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/configz", nil)
	require.NoError(t, err)
	response, err := anyone.Do(get)
	require.NoError(t, err)
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusUnauthorized {
		t.Errorf("somebody without credentials gets %s", response.Status)
	}
}
