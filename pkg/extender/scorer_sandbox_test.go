package extender

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// Four nodes among which the plugins see no difference.
const equalNodes = `shapes:
- name: node
  count: 4
  labels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.count: "8"}
  allocatable: {cpu: "96", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
`

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

// TestOurSchedulerAsksAScorerOfTheUsersOwn runs the example configuration on a real control plane: where the plugins see no
// difference, the model decides. It is asked about all nodes that fit.
func TestOurSchedulerAsksAScorerOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	model := &scorer{
		weights: [2]float64{3, 2}, bias: -2, // faults in the last year, hours at high temperature
		features: map[string][2]float64{"node-0": {0, 1}, "node-1": {1, 1}, "node-2": {0, 0}, "node-3": {0.5, 0.5}},
	}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	example, err := os.ReadFile("../../manifests/configurations/external-scorer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(example), "http://127.0.0.1:9000", server.URL)
	// A machine that compiles beside the test is slow to answer, and the scheduler would go on without.
	text = strings.ReplaceAll(text, "httpTimeout: 500ms", "httpTimeout: 30s")
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	box := box.Start(t, equalNodes, sandbox.Options{SchedulerConfig: config, NoKubelet: true})
	var order []string
	for _, name := range []string{"first", "second", "third", "fourth"} {
		pod := newPod(name, "", 8, nil)
		no := false
		pod.UID, pod.Spec.SchedulerName, pod.Spec.AutomountServiceAccountToken = "", "gpu-aware-scheduler", &no
		pod.Spec.Containers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Requests
		if _, err := box.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		box.Await(t, "a node for the "+name+" pod", func(ctx context.Context) (bool, error) {
			p, err := box.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil || p.Spec.NodeName == "" {
				return false, err
			}
			order = append(order, p.Spec.NodeName)
			return true, nil
		})
	}
	if diff := cmp.Diff([]string{"node-2", "node-0", "node-3", "node-1"}, order); diff != "" {
		t.Errorf("nodes in the order in which they were chosen (-by the model +got):\n%s", diff)
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	// The last pod fits one node only, of which nobody is asked.
	if diff := cmp.Diff([]int{4, 3, 2}, model.asked); diff != "" {
		t.Errorf("nodes of each request (-want +got):\n%s", diff)
	}
}
