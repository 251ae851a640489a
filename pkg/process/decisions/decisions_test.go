package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/configz"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

// fixed is a framework whose plugins give every node the same in every cycle.
type fixed struct {
	framework.Framework
	scorer process.Scorer
	scores []fwk.NodePluginScores
	left   sets.Set[string]
	hint   string
}

func (*fixed) ProfileName() string { return "berth-scheduler" }

func (f *fixed) EnqueueExtensions() []fwk.EnqueueExtensions {
	return []fwk.EnqueueExtensions{f.scorer.(fwk.EnqueueExtensions)}
}

func (*fixed) ListPlugins() *schedulerconfig.Plugins {
	return &schedulerconfig.Plugins{Score: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Cost",
		Weight: 20}, {Name: "Other", Weight: 1}}}}
}

func (f *fixed) RunPreFilterPlugins(context.Context, fwk.CycleState, *v1.Pod) (*fwk.PreFilterResult, *fwk.Status,
	sets.Set[string]) {
	if f.left == nil {
		return nil, nil, nil
	}
	return &fwk.PreFilterResult{NodeNames: f.left}, nil, sets.New("Coscheduling")
}

func (f *fixed) GetNodeHint(context.Context, *v1.Pod, fwk.PodSignature, fwk.CycleState, int64) string {
	return f.hint
}

func (f *fixed) RunScorePlugins(context.Context, fwk.CycleState, *v1.Pod, []fwk.NodeInfo) ([]fwk.NodePluginScores,
	*fwk.Status) {
	return f.scores, nil
}

func (*fixed) RunReservePluginsReserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return nil
}

// costly is a plugin whose scores stand for a cost.
type costly struct{ process.Scorer }

func (costly) Name() string { return "Cost" }

func (costly) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

func (costly) Terms(_ context.Context, _ fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo) (process.Cost, error) {
	return process.Cost{Unit: "dollars an hour",
		Terms: []process.Term{{Name: "share", Amount: float64(info.Node().Name[5] - '0'), For: "its share"}}}, nil
}

func cluster(n int) (*fixed, []fwk.NodeInfo) {
	f := &fixed{scorer: costly{}}
	nodes := make([]fwk.NodeInfo, n)
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		info := framework.NewNodeInfo()
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		nodes[i] = info
		// The first node is the best; the second has the same score.
		points := int64(max(n-max(i, 1), 0))
		f.scores = append(f.scores, fwk.NodePluginScores{Name: name, TotalScore: 20*points + 7,
			Scores:    []fwk.PluginScore{{Name: "Cost", Score: 20 * points}, {Name: "Other", Score: 7}},
			RawScores: []fwk.PluginScore{{Name: "Cost", Score: -points}, {Name: "Other", Score: 70}}})
	}
	return f, nodes
}

func podOf(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
}

// decide runs a cycle for the pod that ends on the node.
func decide(p framework.Framework, pod *v1.Pod, nodes []fwk.NodeInfo, scored bool, on string) {
	ctx, state := context.Background(), fwk.CycleState(framework.NewCycleState())
	p.RunPreFilterPlugins(ctx, state, pod)
	if p.GetNodeHint(ctx, pod, nil, state, 0) == "" && scored {
		// The scheduler makes a heap of them.
		scores, _ := p.RunScorePlugins(ctx, state, pod, nodes)
		slices.Reverse(scores)
		defer slices.Reverse(scores)
	}
	p.RunReservePluginsReserve(ctx, state, pod, on)
}

func wrapped(t testing.TB, inner framework.Framework, most int) (framework.Framework, *History) {
	t.Helper()
	h, err := New(most)
	require.NoError(t, err)
	profiles := map[string]framework.Framework{"p": inner}
	Wrap(profiles, h)
	return profiles["p"], h
}

func TestADecisionIsRememberedWithWhatCameNext(t *testing.T) {
	t.Parallel()
	inner, nodes := cluster(5)
	p, h := wrapped(t, inner, 10)
	decide(p, podOf("a"), nodes, true, "node-1")
	list := h.List()
	d := list.Of(Subject{types.NamespacedName{Namespace: "default", Name: "a"}, "uid-a"})
	if d == nil {
		t.Fatal("the decision is not remembered")
	}
	var got []string
	for _, n := range d.Nodes {
		got = append(got, fmt.Sprintf("%s %d", n.Name, n.Total))
	}
	// The chosen node first, and of the others one that lost before the one that is as good.
	assert.Equal(t, "nodes", []string{"node-1 87", "node-2 67"}, got)
	want := []Score{
		{Plugin: "Cost", Raw: -4, Weight: 20, Weighted: 80, Unit: "dollars an hour",
			Terms: []Term{{Name: "share", Amount: 1, For: "its share"}}},
		{Plugin: "Other", Raw: 70, Weight: 1, Weighted: 7},
	}
	assert.Equal(t, "scores of the chosen node", want, d.Nodes[0].Scores)
	if d.Compared != 5 || d.Node != "node-1" || d.Profile != "berth-scheduler" {
		t.Errorf("got %+v, want 5 nodes compared, node-1 and berth-scheduler", d)
	}
}

func TestWithoutScoresItIsSaidWhoDecided(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(*fixed)
		want string
	}{
		{"one node fits", func(*fixed) {}, ""},
		{"a plan", func(f *fixed) { f.left = sets.New("node-0") }, "Coscheduling"},
		{"several nodes are left", func(f *fixed) { f.left = sets.New("node-0", "node-1") }, ""},
		{"an equal pod", func(f *fixed) { f.hint = "node-0" }, Batch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inner, nodes := cluster(2)
			tt.set(inner)
			p, h := wrapped(t, inner, 10)
			decide(p, podOf("a"), nodes, false, "node-0")
			if d := h.List().Items[0]; d.ChosenBy != tt.want || d.Compared != 0 || len(d.Nodes) != 0 {
				t.Errorf("got %+v, want that %q decided without scores", d, tt.want)
			}
		})
	}
}

func TestScoresOfAnotherCycleDoNotCount(t *testing.T) {
	t.Parallel()
	inner, nodes := cluster(3)
	p, h := wrapped(t, inner, 10)
	ctx := t.Context()
	p.RunScorePlugins(ctx, framework.NewCycleState(), podOf("a"), nodes)
	p.RunReservePluginsReserve(ctx, framework.NewCycleState(), podOf("b"), "node-0")
	if d := h.List().Items[0]; d.Compared != 0 {
		t.Errorf("got %+v, want no scores", d)
	}
}

func TestOldDecisionsAreForgotten(t *testing.T) {
	t.Parallel()
	inner, nodes := cluster(3)
	p, h := wrapped(t, inner, 3)
	for i := range 7 {
		decide(p, podOf(fmt.Sprint("p", i)), nodes, true, "node-0")
	}
	var got []string
	for _, d := range h.List().Items {
		got = append(got, d.Pod.Name)
	}
	assert.Equal(t, "kept", []string{"p6", "p5", "p4"}, got)
	if len(h.decisions) != 3 {
		t.Errorf("%d are held, want 3", len(h.decisions))
	}
}

func TestANumberOfDecisionsIsInBounds(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, Most + 1} {
		if _, err := New(n); err == nil {
			t.Errorf("New(%d) succeeds", n)
		}
	}
}

// The registry of what is served is the process's, so this test does not run in parallel with itself.
func TestTheHistoryIsServedAsItIsWhenAskedFor(t *testing.T) {
	inner, nodes := cluster(3)
	p, h := wrapped(t, inner, 3)
	require.NoError(t, h.Serve())
	defer configz.Delete(Name)
	mux := http.NewServeMux()
	configz.InstallHandler(mux)
	for want := range 3 {
		response := httptest.NewRecorder()
		mux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, Path, nil))
		list, err := Read(response.Body.Bytes())
		require.NoError(t, err)
		if len(list.Items) != want || list.Kept != 3 || list.Kind != "DecisionList" {
			t.Errorf("got %+v, want a DecisionList of %d, 3 of which are kept", list, want)
		}
		if want > 0 {
			assert.Equal(t, "decisions after a round trip",
				must(json.Marshal(h.List().Items)), must(json.Marshal(list.Items)))
		}
		decide(p, podOf(fmt.Sprint("p", want)), nodes, true, "node-0")
	}
}

func must(b []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestAnAnswerWithoutDecisionsIsAnError(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{"componentconfig": {}}`: "keeps no decisions", `<html>`: "decoding", `{"berth.dev/decisions": []}`: "decoding"} {
		if _, err := Read([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%s): got error %v, want %q in it", body, err, want)
		}
	}
}
