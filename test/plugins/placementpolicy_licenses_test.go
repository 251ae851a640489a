package plugins_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/objects"
)

// place reserves a node for the pod, and returns why not.
func (g *governed) place(tb testing.TB, pod *v1.Pod, node string) (fwk.CycleState, string) {
	tb.Helper()
	o := g.Cycle(tb, pod)
	for _, of := range []string{"", node} {
		if reason := o.Reasons()[of]; reason != "" {
			return o.State, reason
		}
	}
	return o.State, g.RunReservePluginsReserve(tb.Context(), o.State, pod, node).Message()
}

// mustPlace reserves a node for the pod.
func (g *governed) mustPlace(tb testing.TB, pod *v1.Pod, node string) fwk.CycleState {
	tb.Helper()
	state, reason := g.place(tb, pod, node)
	if reason != "" {
		tb.Fatalf("pod %s: %s", pod.Name, reason)
	}
	return state
}

// bind has the API server tell that a pod has a node.
func (g *governed) bind(tb testing.TB, pod *v1.Pod, node string) {
	tb.Helper()
	pod.Spec.NodeName = node
	g.Create(tb, pod)
	pass(second)
}

// used is how many licenses of the policy tools are in use, as it says itself.
func (g *governed) used(t *testing.T) int64 {
	t.Helper()
	pass(minute)
	licenses := g.status(t, "tools").Licenses
	if len(licenses) != 1 {
		t.Fatalf("the status of the policy says %v", licenses)
	}
	return licenses[0].Used
}

func matlab(name string) *v1.Pod { return licensed(name).Obj() }

func TestALicenseIsHeldUntilThePodIsGone(t *testing.T) {
	t.Parallel()
	const none = "node(s) without a free license matlab: 2 of 2 in use, the pod uses 1 (rule matlab of placement policy " +
		"tools)"
	ended := func(phase v1.PodPhase) func(*testing.T, *governed, fwk.CycleState, *v1.Pod) {
		return func(t *testing.T, g *governed, _ fwk.CycleState, p *v1.Pod) {
			p.Status.Phase = phase
			g.bind(t, p, "b")
		}
	}
	tests := map[string]struct {
		// free is what happens to the second of two pods that have licenses; a third is to get one then.
		free func(t *testing.T, g *governed, state fwk.CycleState, second *v1.Pod)
		want string
	}{
		"its reservation is ended": {func(t *testing.T, g *governed, s fwk.CycleState, p *v1.Pod) {
			g.RunReservePluginsUnreserve(t.Context(), s, p, "b")
		}, ""},
		"it is bound, then its reservation is ended, because the answer was lost": {func(t *testing.T, g *governed,
			s fwk.CycleState, p *v1.Pod) {
			g.bind(t, p, "b")
			g.RunReservePluginsUnreserve(t.Context(), s, p, "b")
		}, none},
		"it is bound and has failed":    {ended(v1.PodFailed), ""},
		"it is bound and has succeeded": {ended(v1.PodSucceeded), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g := govern(t, specs{"tools": twoMatlab}, twoPools()...)
				g.mustPlace(t, matlab("first"), "a")
				second := matlab("second")
				test.free(t, g, g.mustPlace(t, second, "b"), second)
				pass(minute)
				if _, reason := g.place(t, matlab("third"), "a"); reason != test.want {
					t.Errorf("the third pod: %q, want %q", reason, test.want)
				}
			})
		})
	}
}

func TestAPolicyThatComesLaterCountsPodsThatAreAboutToRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		user := func(name string) *v1.Pod { return objects.Pod(name).Label("app", "matlab").Obj() }
		g := govern(t, nil, twoPools(user("first"))...)
		pass(second)
		g.mustPlace(t, user("first"), "a")
		g.apply(t, "tools", `licenses: [{name: matlab, count: 1, pods: {selector: {matchLabels: {app: matlab}}}}]`)
		pass(second)
		if _, reason := g.place(t, user("second"), "a"); !strings.Contains(reason, "1 of 1 in use") {
			t.Errorf("the second pod: %q", reason)
		}
	})
}

func TestALicenseThatWasFreedByEvictionIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		preemptor := licensed("preemptor").Priority(10).NominatedNodeName("a").Obj()
		g := govern(t, specs{"tools": `licenses: [{name: matlab, count: 1}]`}, twoPools(preemptor)...)
		pass(second)
		for priority, free := range map[int32]bool{0: false, 10: true, 20: true} {
			got := g.Cycle(t, licensed(fmt.Sprint("p", priority)).Priority(priority).Obj()).Totals()
			if fits := len(got) == 2; fits != free {
				t.Errorf("a pod of priority %d: %v, want it to fit: %t", priority, got, free)
			}
		}
		if _, reason := g.place(t, preemptor, "a"); reason != "" {
			t.Errorf("the pod for which others were evicted: %s", reason)
		}
		g.DeletePod(t, "preemptor")
		if used := g.used(t); used != 0 {
			t.Errorf("%d licenses are used after its end", used)
		}
		if got := g.Cycle(t, matlab("last")).Totals(); len(got) != 2 {
			t.Errorf("a pod after its end: %v", got)
		}
	})
}

// The queue may hear of a deletion before the ledger does: the pod that it wakes must find the license free.
func TestAHintFreesTheLicenseOfAPodThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := govern(t, specs{"tools": `licenses: [{name: matlab, count: 1}]`}, twoPools()...)
		holder, user := matlab("holder"), matlab("user")
		g.mustPlace(t, holder, "a")
		if got := hint(t, g.plugin, 0, user, holder, nil); got != fwk.Queue {
			t.Fatalf("hint is %v", got)
		}
		g.mustPlace(t, user, "a")
		// A binding that failed for the scheduler alone is told in the same way, and the pod runs.
		g.bind(t, user, "a")
		hint(t, g.plugin, 0, matlab("next"), user, nil)
		if used := g.used(t); used != 1 {
			t.Errorf("%d licenses are used while the pod runs, want 1", used)
		}
	})
}

// It runs in real time, for the goroutines to be where they like.
func TestReserveAtTheSameTimeNeverGivesTooMany(t *testing.T) {
	t.Parallel()
	g := govern(t, specs{"tools": twoMatlab}, twoPools()...)
	var wg sync.WaitGroup
	var given atomic.Int32
	for i := range 64 {
		wg.Go(func() {
			state := upstream.NewCycleState()
			if g.plugin.Reserve(t.Context(), state, matlab(fmt.Sprint("p", i)), "a").IsSuccess() {
				given.Add(1)
			}
		})
	}
	wg.Wait()
	if n := given.Load(); n != 2 {
		t.Errorf("%d pods were given one of 2 licenses", n)
	}
}

// So does this one.
func TestPoliciesChangeWhilePodsAreReserved(t *testing.T) {
	t.Parallel()
	g := govern(t, specs{"tools": twoMatlab}, twoPools()...)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				g.apply(t, fmt.Sprint("other-", i%3), fmt.Sprintf(`licenses: [{name: other, count: %d}]`, i+1))
			}
		}
	})
	for i := range 200 {
		p := matlab(fmt.Sprint("p", i))
		g.Create(t, p)
		state := upstream.NewCycleState()
		if status := g.plugin.Reserve(t.Context(), state, p, "a"); status.IsSuccess() != (i < 2) {
			t.Errorf("pod %d: %v", i, status)
		}
	}
	close(stop)
	wg.Wait()
	if _, reason := g.place(t, matlab("last"), "a"); !strings.Contains(reason, "2 of 2 in use") {
		t.Errorf("the last pod: %q, want it to be told that two licenses are used", reason)
	}
}
