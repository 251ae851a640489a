package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

// caller is the scheduler's own client.
func caller(t *testing.T, address string, tune func(*schedulerconfig.Extender)) fwk.Extender {
	t.Helper()
	config := &schedulerconfig.Extender{
		URLPrefix: "http://" + address, FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 2,
		HTTPTimeout: metav1.Duration{Duration: time.Minute}, NodeCacheCapable: true,
	}
	if tune != nil {
		tune(config)
	}
	e, err := scheduler.NewHTTPExtender(config)
	require.NoError(t, err)
	return e
}

func infos(nodes ...*v1.Node) []fwk.NodeInfo {
	list := make([]fwk.NodeInfo, len(nodes))
	for i, node := range nodes {
		info := framework.NewNodeInfo()
		info.SetNode(node)
		list[i] = info
	}
	return list
}

func namesOf(list []fwk.NodeInfo) []string {
	names := make([]string, len(list))
	for i, info := range list {
		names[i] = info.Node().Name
	}
	return names
}

// newWorld has nodes that differ in what they have left, and one with another model.
func newWorld(t testing.TB, more ...runtime.Object) (*harness, []*v1.Node) {
	t.Helper()
	nodes := []*v1.Node{gpuNode("empty", 8), gpuNode("half", 8), gpuNode("full", 8),
		gpuNode("t4", 8, "nvidia.com/gpu.product", "Tesla-T4", "nvidia.com/gpu.memory", "15360")}
	more = append(more, newPod("a", "half", 4, nil), newPod("b", "full", 8, nil))
	for _, node := range nodes {
		more = append(more, node)
	}
	return newHarness(t, more...), nodes
}

func TestTheSchedulersClientIsAnswered(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	client := caller(t, h.serve(t, Serving{}), nil)
	pod := newPod("new", "", 4, map[string]string{"berth.dev/gpu-models": "NVIDIA-A100-SXM4-80GB"})
	asked := infos(append(slices.Clone(nodes), gpuNode("stranger", 8))...)
	passed, failed, unresolvable, err := client.Filter(pod, asked)
	require.NoError(t, err)
	if diff := cmp.Diff([]string{"empty", "half"}, namesOf(passed)); diff != "" {
		t.Errorf("nodes that pass (-want +got):\n%s", diff)
	}
	if !strings.Contains(failed["full"], "GPU") || len(failed) != 2 || failed["stranger"] != unknownNode.Message() {
		t.Errorf("nodes on which evictions may help: %v", failed)
	}
	if len(unresolvable) != 1 || !strings.Contains(unresolvable["t4"], "model") {
		t.Errorf("nodes on which evictions do not help: %v", unresolvable)
	}
	list, weight, err := client.Prioritize(pod, infos(nodes[0], nodes[1], gpuNode("stranger", 8)))
	require.NoError(t, err)
	score := map[string]int64{}
	for _, s := range *list {
		score[s.Host] = s.Score
	}
	if weight != 2 || len(score) != 3 || score["half"] <= score["empty"] || score["half"] > 10 ||
		score["stranger"] != 0 {
		t.Errorf("priorities %v with weight %d, want half above empty", score, weight)
	}
}

// The devices of a pod on such a node would have to be chosen when it is bound.
func TestNodesThatShareTheirGPUsAreRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, shared("shared", 2), gpuNode("whole", 2))
	for _, pod := range []*v1.Pod{share("share", "500"), newPod("one", "", 1, nil)} {
		statuses, err := h.filter(t.Context(), pod, []string{"shared"})
		require.NoError(t, err)
		if s := statuses[0]; s != unassigned {
			t.Errorf("pod %s on the node that shares: %v", pod.Name, s)
		}
	}
	statuses, err := h.filter(t.Context(), newPod("none", "", 0, nil), []string{"shared", "whole"})
	if err != nil || !statuses[0].IsSuccess() || !statuses[1].IsSuccess() {
		t.Errorf("a pod without GPUs: %v, error %v", statuses, err)
	}
}

func TestAPodThatCannotBeReadIsRefusedOnAllNodesWithTheReason(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	client := caller(t, h.serve(t, Serving{}), nil)
	pod := newPod("new", "", 1, map[string]string{"berth.dev/gpu-memory-min": "much"})
	passed, _, unresolvable, err := client.Filter(pod, infos(nodes...))
	if err != nil || len(passed) > 0 || len(unresolvable) != len(nodes) || !strings.Contains(unresolvable["empty"],
		"berth.dev/gpu-memory-min") {
		t.Errorf("passed %v, refused %v, error %v", namesOf(passed), unresolvable, err)
	}
	if list, _, err := client.Prioritize(pod, infos(nodes...)); err == nil {
		t.Errorf("priorities %v for a pod that cannot be read", list)
	}
}

func TestRequestsThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	h, _ := newWorld(t)
	address := "http://" + h.serve(t, Serving{})
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"garbage":                      {"POST", "/filter", "{]", 400, "reading the request"},
		"nothing":                      {"POST", "/filter", "", 400, "reading the request"},
		"another type":                 {"POST", "/prioritize", `[1]`, 400, "reading the request"},
		"null":                         {"POST", "/filter", `null`, 400, "it has no Pod"},
		"more after the end":           {"POST", "/filter", `{"Pod":{},"NodeNames":[]} {}`, 400, "more follows"},
		"no pod":                       {"POST", "/filter", `{"NodeNames":["a"]}`, 400, "it has no Pod"},
		"no nodes":                     {"POST", "/prioritize", `{"Pod":{}}`, 400, "it has no NodeNames"},
		"nodes in full":                {"POST", "/filter", `{"Pod":{},"Nodes":{"items":[{}]}}`, 400, "nodeCacheCapable: true"},
		"a body above the limit":       {"POST", "/filter", `{"Pod":{"x":"` + strings.Repeat("x", bodyBytes) + `"}}`, 413, "nodeCacheCapable: true"},
		"another method":               {"GET", "/filter", "", 405, "Method Not Allowed"},
		"a verb that does not exist":   {"POST", "/bind", "{}", 404, "not found"},
		"no nodes at all are no error": {"POST", "/filter", `{"Pod":{},"NodeNames":[]}`, 200, `"NodeNames":[]`},
		"health":                       {"GET", "/healthz", "", 200, "ok"},
		"readiness":                    {"GET", "/readyz", "", 200, "ok"},
		"metrics without a token":      {"GET", "/metrics", "", 401, "Authorization: Bearer TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(t.Context(), tc.method, address+tc.path, strings.NewReader(tc.body))
			require.NoError(t, err)
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			if response.StatusCode != tc.status || !bytes.Contains(body, []byte(tc.want)) {
				t.Errorf("%d %s\nwant %d and %q", response.StatusCode, body, tc.status, tc.want)
			}
		})
	}
}

func TestAnExtenderThatHasNotSeenTheClusterSaysSo(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	h.synced.Store(false)
	const want = "has not seen the whole cluster yet"
	address := h.serve(t, Serving{})
	client := caller(t, address, nil)
	if _, _, _, err := client.Filter(newPod("new", "", 1, nil), infos(nodes...)); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("filter: error %v", err)
	}
	if _, _, err := client.Prioritize(newPod("new", "", 1, nil), infos(nodes...)); err == nil ||
		!strings.Contains(err.Error(), "503") {
		t.Errorf("prioritize: error %v", err)
	}
	response, err := http.Get("http://" + address + "/readyz")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("ready: %s", response.Status)
	}
}

// A request that is out of time must not pass nodes that were not looked at.
func TestARequestOutOfTimeIsAnError(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: newPod("new", "", 1, nil), NodeNames: &[]string{"empty"}})
	require.NoError(t, err)
	answer := httptest.NewRecorder()
	h.cycle <- struct{}{}
	h.handler(500*time.Millisecond).
		ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/filter", bytes.NewReader(body)))
	<-h.cycle
	var result extenderv1.ExtenderFilterResult
	if err := json.Unmarshal(answer.Body.Bytes(), &result); err != nil {
		t.Fatalf("answer %s: %v", answer.Body, err)
	}
	if !strings.Contains(result.Error, "waiting for earlier requests") || result.NodeNames != nil {
		t.Errorf("answer %s", answer.Body)
	}
	client := caller(t, h.serve(t, Serving{}), nil)
	if passed, _, _, err := client.Filter(newPod("new", "", 1, nil), infos(nodes...)); err != nil || len(passed) != 3 {
		t.Errorf("the next request: %v, error %v", namesOf(passed), err)
	}
}

// sendHalf begins a request.
func sendHalf(t *testing.T, address, content string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /filter HTTP/1.1\r\nHost: extender\r\nContent-Length: 65536\r\n\r\n%s",
		content); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Callers that send half a request are not waited for longer than a request may take.
func TestSlowCallersAreCutOff(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	address := h.serve(t, Serving{Within: 500 * time.Millisecond})
	slow := make([]net.Conn, 4)
	for i := range slow {
		slow[i] = sendHalf(t, address, "{")
	}
	client := caller(t, address, nil)
	await.Until(t, "an answer", func() bool {
		passed, _, _, err := client.Filter(newPod("new", "", 1, nil), infos(nodes...))
		return err == nil && len(passed) == 3
	})
	for _, conn := range slow {
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the end of a slow connection: %v", err)
		}
	}
}

func TestRequestsAtTheSameTimeDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	client := caller(t, h.serve(t, Serving{}), nil)
	done := make(chan string, 32)
	for i := range cap(done) {
		go func() {
			pod, want := newPod("new", "", 8, nil), []string{"empty", "t4"}
			if i%2 == 0 {
				pod, want = newPod("new", "", 4, nil), []string{"empty", "half", "t4"}
			}
			passed, _, _, err := client.Filter(pod, infos(nodes...))
			if err != nil {
				done <- err.Error()
				return
			}
			done <- cmp.Diff(want, namesOf(passed))
		}()
	}
	for range cap(done) {
		if diff := <-done; diff != "" {
			t.Error(diff)
		}
	}
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	scores := func(totals ...int64) (list []fwk.NodePluginScores) {
		for i, total := range totals {
			list = append(list, fwk.NodePluginScores{Name: string(rune('a' + i)), TotalScore: total})
		}
		return list
	}
	for name, tc := range map[string]struct {
		scores []fwk.NodePluginScores
		want   []int64
	}{
		"the best alone gets the highest":        {scores(2000, 1999, 1000, 0), []int64{10, 9, 5, 0}},
		"nodes that are equally good are equal":  {scores(2000, 2000), []int64{10, 10}},
		"the best keeps a step of its own":       {scores(1010, 1005, 990), []int64{6, 5, 4}},
		"a best that is hardly better than none": {scores(1, 0), []int64{1, 0}},
		"nodes without scores":                   {scores(0, 0), []int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, s := range tc.scores {
				names = append(names, s.Name)
			}
			if diff := cmp.Diff(tc.want, priorities(names, tc.scores, 2000)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
