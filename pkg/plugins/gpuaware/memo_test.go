package gpuaware

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/gpu"
)

func TestAMemoIsTrueOfOneStateOfANode(t *testing.T) {
	t.Parallel()
	m := make(memo, 2)
	m.store(1, 7, 42)
	m.store(2, 7, 1)  // beyond its end: forgotten
	m.store(-1, 7, 1) // a node that is gone
	memo(nil).store(0, 7, 1)
	for _, tc := range []struct {
		name       string
		memo       memo
		index      int
		generation int64
		want       int64
		found      bool
	}{
		{"the same state", m, 1, 7, 42, true},
		{"a later state", m, 1, 8, 0, false},
		{"another node", m, 0, 7, 0, false},
		{"a node that came later", m, 2, 7, 0, false},
		{"a node that is gone", m, -1, 7, 0, false},
		{"no memo", nil, 0, 7, 0, false},
	} {
		if got, ok := tc.memo.load(tc.index, tc.generation); got != tc.want || ok != tc.found {
			t.Errorf("%s: %d, %v, want %d, %v", tc.name, got, ok, tc.want, tc.found)
		}
	}
}

// TestAMemoNeverMixesTwoStates writes and reads one cell from many goroutines: what is found for a state is what was
// found for that state, whichever was faster.
func TestAMemoNeverMixesTwoStates(t *testing.T) {
	t.Parallel()
	m := make(memo, 1)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 20_000 {
				generation := int64(1 + (i+g)%5)
				if g%2 == 0 {
					m.store(0, generation, generation*1000)
				} else if finding, ok := m.load(0, generation); ok && finding != generation*1000 {
					t.Errorf("found %d for state %d", finding, generation)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestMemosAreKeptForKindsSeenTwice(t *testing.T) {
	t.Parallel()
	m, kind := newMemos(), memoKey{claims: "a", scores: true}
	of := func(kind memoKey, learnt uint64, indices int) memo {
		found, _ := m.of(kind, learnt, indices)
		return found
	}
	if of(kind, 1, 10) != nil {
		t.Error("the first pod of its kind has a memo")
	}
	second := of(kind, 1, 10)
	if len(second) < 10 {
		t.Fatalf("the second has one of %d nodes, want 10", len(second))
	}
	second.store(3, 7, 42)
	for _, tc := range []struct {
		name    string
		kind    memoKey
		learnt  uint64
		indices int
		found   bool
	}{
		{"again", kind, 1, 10, true},
		{"another kind", memoKey{claims: "b", scores: true}, 1, 10, false},
		{"what is no score", memoKey{claims: "a"}, 1, 10, false},
		{"once more", kind, 1, 10, true},
		{"with another mix", kind, 2, 10, false},
		{"with more nodes", kind, 2, 1000, false},
	} {
		if _, ok := of(tc.kind, tc.learnt, tc.indices).load(3, 7); ok != tc.found {
			t.Errorf("%s: found %v, want %v", tc.name, ok, tc.found)
		}
	}
	if got := len(of(kind, 2, 1000)); got < 1000 {
		t.Errorf("a memo of %d nodes where there are 1000", got)
	}
	for i := range 2 * maxMemos {
		of(memoKey{claims: fmt.Sprint(i)}, 1, 10)
	}
	if got := m.byKey.Len(); got > maxMemos {
		t.Errorf("%d memos are kept, want at most %d", got, maxMemos)
	}
}

func TestChangesAreNumberedOnce(t *testing.T) {
	t.Parallel()
	c := newChanges()
	if _, ok := (*changes)(nil).number(&gpu.Change{}); ok {
		t.Error("no table numbers a change")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range firstChunk * 7 { // which fill three chunks
				change := gpu.Change{GPUs: float64(i)}
				n, ok := c.number(&change)
				if !ok || *c.at(n) != change {
					t.Errorf("change %d has number %d, which is %+v", i, n, *c.at(n))
					return
				}
			}
		})
	}
	all.Wait()
	for i := range mostChanges {
		c.number(&gpu.Change{GPUs: float64(i)})
	}
	if !c.full() {
		t.Error("a table of the most changes is not full")
	}
	if _, ok := c.number(&gpu.Change{GPUs: -1}); ok {
		t.Error("changes are numbered without bound")
	}
	if n, ok := c.number(&gpu.Change{GPUs: 7}); !ok || c.at(n).GPUs != 7 {
		t.Error("a change that is known has no number any more")
	}
}

func TestRefusalsAreWordedOnce(t *testing.T) {
	t.Parallel()
	r := newRefusals()
	taken := gpu.Reason{Cause: gpu.GPUsTaken, Need: 2, Have: 1}
	first, _ := r.number(taken)
	again, ok := r.number(taken)
	if !ok || first != again || first == 0 {
		t.Errorf("numbers %d and %d of one reason", first, again)
	}
	if n, ok := r.number(gpu.Reason{}); n != 0 || !ok || r.status(n) != nil {
		t.Errorf("no reason has number %d and status %v", n, r.status(n))
	}
	status := r.status(first)
	status.SetPlugin("somebody")
	status.AppendReason("more")
	got := r.status(first)
	if got.Code() != fwk.Unschedulable || got.Message() != taken.String() || got.Plugin() != "" {
		t.Errorf("after somebody wrote on a status the next is %v by %q, want %v", got, got.Plugin(), taken)
	}
	var kinds []string
	for r := range cycles.Reasons(got) {
		kinds = append(kinds, r.Kind())
	}
	if diff := cmp.Diff([]string{taken.Kind()}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	for i := range maxRefusals {
		r.number(gpu.Reason{Cause: gpu.TooFewGPUs, Need: i})
	}
	if _, ok := r.number(gpu.Reason{Cause: gpu.TooFewGPUs, Need: maxRefusals}); ok {
		t.Error("reasons are remembered without bound")
	}
	if n, ok := r.number(taken); n != first || !ok {
		t.Errorf("a reason has changed its number from %d to %d", first, n)
	}
}

// TestAPluginThatRemembersDecidesAsOneThatDoesNot runs cycles of a few kinds of pods while nodes change and are
// replaced, the mix is learnt again, and the cluster fills up and turns over.
func TestAPluginThatRemembersDecidesAsOneThatDoesNot(t *testing.T) {
	t.Parallel()
	h := busyCluster(t, 40)
	infos, err := h.Snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	const free = 5
	for _, info := range infos[:free] {
		info.(*framework.NodeInfo).SetNode(gpuNodeObject(info.Node().Name, 8, "NVIDIA-A10"))
		if err := info.(*framework.NodeInfo).RemovePod(h.logger, info.GetPods()[0].GetPod()); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	remembered := 0
	for i := range 400 {
		info := infos[free+random.IntN(len(infos)-free)].(*framework.NodeInfo)
		switch i % 20 {
		case 7: // as after each change of the object by its kubelet
			node := info.Node().DeepCopy()
			if i%40 == 7 {
				node.Labels["nvidia.com/gpu.product"] = "Tesla-T4"
			}
			info.SetNode(node)
		case 11:
			for range 50 {
				h.plugin.cluster.views.totals.came()
				if i > 200 {
					h.plugin.cluster.views.totals.went()
				}
			}
		case 13:
			for range 100 {
				h.plugin.cluster.arrived(podObject("arrived", strs{"nvidia.com/gpu": fmt.Sprint(1 + i/20%8)}, nil))
			}
		default:
			taken := podObject(fmt.Sprint(i), strs{"cpu": "1", "nvidia.com/gpu": "1"}, nil)
			taken.UID = "taken-" + taken.UID
			info.AddPod(taken)
		}
		pod := podObject("p", strs{"cpu": fmt.Sprint(1 + random.IntN(2)), "nvidia.com/gpu": fmt.Sprint(1 + random.IntN(3))},
			nil)
		if random.IntN(3) == 0 {
			pod = podObject("p", strs{"cpu": "2"}, strs{"alibabacloud.com/gpu-milli": fmt.Sprint(250 * (1 + random.IntN(2)))})
		}
		forgetful := *h.plugin
		forgetful.memos = newMemos()
		verdicts(t, &forgetful, pod, infos) // free nodes are counted as they are looked at
		forgetful.memos = newMemos()
		want, _ := verdicts(t, &forgetful, pod, infos)
		got, known := verdicts(t, h.plugin, pod, infos)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("cycle %d (-forgetful +remembering):\n%s", i, diff)
		}
		remembered += known
	}
	if remembered < 400*len(infos)/2 {
		t.Errorf("only %d of %d findings were remembered", remembered, 400*len(infos))
	}
}

// verdicts is what a plugin says of each node, and of how many it had it remembered.
func verdicts(t *testing.T, p *Plugin, pod *v1.Pod, infos []fwk.NodeInfo) (found map[string]string, remembered int) {
	t.Helper()
	ctx, cycle := t.Context(), framework.NewCycleState()
	if _, status := p.PreFilter(ctx, cycle, pod, infos); !status.IsSuccess() {
		t.Fatal(status)
	}
	s, err := p.state(ctx, cycle, pod)
	if err != nil {
		t.Fatal(err)
	}
	found = map[string]string{}
	for _, info := range infos {
		if _, ok := s.fits.load(p.cluster.views.Of(info.Node()).Index, info.GetGeneration()); ok {
			remembered++
		}
		if status := p.Filter(ctx, cycle, pod, info); !status.IsSuccess() {
			found[info.Node().Name] = status.Message()
			continue
		}
		score, status := p.Score(ctx, cycle, pod, info)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		found[info.Node().Name] = fmt.Sprint(score)
	}
	return found, remembered
}

func TestKindsOfPodsDifferInAllThatTheyAskForButCPU(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[gpu.Request]()
	for i := range fields.NumField() {
		var r gpu.Request
		switch field := reflect.ValueOf(&r).Elem().Field(i); field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int, reflect.Int64:
			field.SetInt(7)
		case reflect.Uint8:
			field.SetUint(1)
		case reflect.String:
			field.SetString("x")
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		default:
			t.Fatalf("field %s has the kind %s, which this test does not know", fields.Field(i).Name, field.Kind())
		}
		if got, want := keyOf(&r) == keyOf(&gpu.Request{}), fields.Field(i).Name == "CPUMilli"; got != want {
			t.Errorf("two requests that differ in %s are one kind: %v, want %v", fields.Field(i).Name, got, want)
		}
	}
	a, b := gpu.Request{Models: []string{"A", "B"}}, gpu.Request{Models: []string{"A B"}}
	if keyOf(&a) == keyOf(&b) {
		t.Error("two models and one whose name is both are one kind")
	}
}
