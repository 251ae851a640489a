package tools_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/box"
)

// scorer plays a model that has learned from past jobs how likely one fails on a node: a logistic regression of two
// features of the node.
type scorer struct {
	weights  [2]float64
	bias     float64
	features map[string][2]float64

	mu sync.Mutex
	// asked are how many nodes each request named.
	asked []int
}

func (s *scorer) priority(node string) int64 {
	x, known := s.features[node]
	if !known {
		return 0
	}
	failure := 1 / (1 + math.Exp(-(s.bias + s.weights[0]*x[0] + s.weights[1]*x[1])))
	return int64(math.Round(float64(extenderv1.MaxExtenderPriority) * (1 - failure)))
}

func (s *scorer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil || args.NodeNames == nil {
		http.Error(w, "want a pod and the names of nodes", http.StatusBadRequest)
		return
	}
	list := extenderv1.HostPriorityList{}
	for _, name := range *args.NodeNames {
		list = append(list, extenderv1.HostPriority{Host: name, Score: s.priority(name)})
	}
	s.mu.Lock()
	s.asked = append(s.asked, len(list))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// asksAScorer runs the example configuration: where the plugins see no difference, the model decides. It is asked about
// all nodes that fit.
func asksAScorer(t *testing.T, shared *box.Box) {
	model := &scorer{
		weights: [2]float64{3, 2}, bias: -2, // faults in the last year, hours at high temperature
		features: map[string][2]float64{"scored-0": {0, 1}, "scored-1": {1, 1}, "scored-2": {0, 0}, "scored-3": {0.5, 0.5}},
	}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	s := newSite(t, shared, "scorer", `shapes:
- {name: scored, count: 4, labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8"}, allocatable: {cpu: 96, memory: 512Gi, nvidia.com/gpu: 8}}
`)
	config := strings.NewReplacer("http://127.0.0.1:9000", server.URL,
		// A machine that compiles beside the test is slow to answer, and the scheduler would go on without.
		"httpTimeout: 500ms", "httpTimeout: 30s").Replace(readManifest(t, "configurations/external-scorer.yaml"))
	box.Command(t, "berth-scheduler", "--config="+write(t, "config.yaml", s.config(t, config, s.Kubeconfig())),
		"--secure-port=0")
	var order []string
	for _, name := range []string{"first", "second", "third", "fourth"} {
		s.create(t, name, func(pod *v1.Pod) {
			pod.Spec.SchedulerName = s.profile("gpu-aware-scheduler")
			asking(pod, "8")
		})
		order = append(order, s.Bound(t, name, "").Spec.NodeName)
	}
	if diff := cmp.Diff([]string{"scored-2", "scored-0", "scored-3", "scored-1"}, order); diff != "" {
		t.Errorf("nodes in the order in which they were chosen (-by the model +got):\n%s", diff)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	// The last pod fits one node only, so that the model is not asked.
	assert.Equal(t, "nodes of each request", []int{4, 3, 2}, model.asked)
}
