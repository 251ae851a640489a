package placementpolicy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/simulation/plugintest"
)

func TestALicenseIsHeldUntilThePodIsGone(t *testing.T) {
	t.Parallel()
	user := func(name string) *v1.Pod { return pod(name, "berth.dev/licenses", "matlab").Obj() }
	const none = "node(s) without a free license matlab: 2 of 2 in use, the pod uses 1 (rule matlab of placement policy tools)"
	tests := map[string]struct {
		// free is what happens to the second of two pods that have licenses; a third is to get one then.
		free func(t *testing.T, c *cluster, state fwk.CycleState, second *v1.Pod)
		want string
	}{
		"nothing happens": {func(*testing.T, *cluster, fwk.CycleState, *v1.Pod) {}, none},
		"its reservation is ended": {func(t *testing.T, c *cluster, s fwk.CycleState, p *v1.Pod) {
			c.framework.RunReservePluginsUnreserve(t.Context(), s, p, "b")
		}, ""},
		"it is bound, then its reservation is ended, because the answer was lost": {func(t *testing.T, c *cluster, s fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName = "b"
			c.create(t, p)
			plugintest.Await(t, "the binding", func() bool { return c.bound(p) })
			c.framework.RunReservePluginsUnreserve(t.Context(), s, p, "b")
		}, none},
		"it is bound, then deleted": {func(t *testing.T, c *cluster, _ fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName = "b"
			c.create(t, p)
			plugintest.Await(t, "the binding", func() bool { return c.bound(p) })
			c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: p.Name})
			plugintest.Await(t, "the deletion", func() bool { return c.used()[0] == 1 })
		}, ""},
		"it is bound and has failed": {func(t *testing.T, c *cluster, _ fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "b", v1.PodFailed
			c.create(t, p)
			plugintest.Await(t, "the failure", func() bool { return c.used()[0] == 1 })
		}, ""},
		"it is bound and has succeeded": {func(t *testing.T, c *cluster, _ fwk.CycleState, p *v1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "b", v1.PodSucceeded
			c.create(t, p)
			plugintest.Await(t, "the end", func() bool { return c.used()[0] == 1 })
		}, ""},
		"there are three licenses": {func(t *testing.T, c *cluster, _ fwk.CycleState, _ *v1.Pod) {
			c.apply(t, "tools", `licenses: [{name: matlab, count: 3}]`)
			plugintest.Await(t, "the policy", func() bool { return c.plugin.book.current().set.Limits()[0].Count == 3 })
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, specs{"tools": twoMatlab}, twoPools()...)
			if _, reason := c.place(t, user("first"), "a"); reason != "" {
				t.Fatal(reason)
			}
			second := user("second")
			state, reason := c.place(t, second, "b")
			if reason != "" {
				t.Fatal(reason)
			}
			test.free(t, c, state, second)
			if _, reason := c.place(t, user("third"), "a"); reason != test.want {
				t.Errorf("the third pod: %q, want %q", reason, test.want)
			}
		})
	}
}

// bound reports whether the ledger has heard that the pod is bound: a cycle would not say.
func (c *cluster) bound(p *v1.Pod) bool {
	known, err := c.plugin.book.pods.Pods(p.Namespace).Get(p.Name)
	if err != nil || known.Spec.NodeName == "" {
		return false
	}
	// What the handler does when its turn comes; twice is as good as once.
	c.plugin.book.bind(known)
	return true
}

func TestLicensesAreCountedAgainAfterARestart(t *testing.T) {
	t.Parallel()
	objects := twoPools()
	for i := range 2 {
		objects = append(objects, pod(fmt.Sprint("running-", i), "berth.dev/licenses", "matlab").Node("a").Obj())
	}
	objects = append(objects, pod("ended", "berth.dev/licenses", "matlab").Node("a").Phase(v1.PodSucceeded).Obj(), pod("waiting", "berth.dev/licenses", "matlab").Obj())
	c := newCluster(t, specs{"tools": twoMatlab}, objects...)
	// The first cycle already knows, whatever the handlers of informers have done by then.
	if _, reason := c.place(t, pod("p", "berth.dev/licenses", "matlab").Obj(), "b"); !strings.Contains(reason, "2 of 2 in use") {
		t.Errorf("a third pod: %q", reason)
	}
}

func TestAPolicyThatComesLaterCountsPodsThatAreAboutToRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, twoPools()...)
	user := pod("first").Label("app", "matlab").Obj()
	c.create(t, user)
	plugintest.Await(t, "the pod", func() bool { _, err := c.plugin.book.pods.Pods("default").Get("first"); return err == nil })
	if _, reason := c.place(t, user, "a"); reason != "" {
		t.Fatal(reason)
	}
	c.apply(t, "tools", `licenses: [{name: matlab, count: 1, pods: {selector: {matchLabels: {app: matlab}}}}]`)
	plugintest.Await(t, "the policy", func() bool { return len(c.plugin.book.current().set.Limits()) == 1 })
	if _, reason := c.place(t, pod("second").Label("app", "matlab").Obj(), "a"); !strings.Contains(reason, "1 of 1 in use") {
		t.Errorf("the second pod: %q", reason)
	}
}

func TestEvictingAHolderFreesALicense(t *testing.T) {
	t.Parallel()
	holder := pod("holder", "berth.dev/licenses", "matlab=2").Node("a").Obj()
	c := newCluster(t, specs{"tools": twoMatlab}, append(twoPools(), holder)...)
	ctx, state := t.Context(), framework.NewCycleState()
	p := pod("p", "berth.dev/licenses", "matlab").Priority(10).Obj()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, p); !status.IsSuccess() {
		t.Fatal(status)
	}
	info := c.framework.Infos(t)[slices.IndexFunc(c.framework.Infos(t), func(n fwk.NodeInfo) bool { return n.Node().Name == "a" })]
	filter := func(state fwk.CycleState) *fwk.Status { return c.framework.RunFilterPlugins(ctx, state, p, info) }
	if status := filter(state); status.Code() != fwk.Unschedulable {
		t.Fatalf("before: %v, want one that evicting pods may help", status)
	}
	trial := state.Clone()
	victim, _ := framework.NewPodInfo(holder)
	if status := c.framework.RunPreFilterExtensionRemovePod(ctx, trial, p, victim, info); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := filter(trial); !status.IsSuccess() {
		t.Errorf("without the holder: %v", status)
	}
	if status := filter(state); status.IsSuccess() {
		t.Error("what was tried on a copy of the state changed the state")
	}
	if status := c.framework.RunPreFilterExtensionAddPod(ctx, trial, p, victim, info); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := filter(trial); status.IsSuccess() {
		t.Error("with the holder back it fits")
	}
	if diff := cmp.Diff([]int64{2}, c.used()); diff != "" {
		t.Errorf("used after trials (-want +got):\n%s", diff)
	}
}

func TestALicenseThatWasFreedByEvictionIsKept(t *testing.T) {
	t.Parallel()
	preemptor := pod("preemptor", "berth.dev/licenses", "matlab").Priority(10).NominatedNodeName("a").Obj()
	c := newCluster(t, specs{"tools": `licenses: [{name: matlab, count: 1}]`}, append(twoPools(), preemptor)...)
	plugintest.Await(t, "the nomination", func() bool { _, ok := c.plugin.book.nominated.Load(preemptor.UID); return ok })
	for priority, free := range map[int32]bool{0: false, 10: true, 20: true} {
		o, _ := c.schedule(t, pod(fmt.Sprint("p", priority), "berth.dev/licenses", "matlab").Priority(priority).Obj())
		if fits := len(o.Scores) == 2; fits != free {
			t.Errorf("a pod of priority %d: %v, want it to fit: %t", priority, o, free)
		}
	}
	if _, reason := c.place(t, preemptor, "a"); reason != "" {
		t.Errorf("the pod for which others were evicted: %s", reason)
	}
	c.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: "preemptor"})
	plugintest.Await(t, "its end", func() bool { _, ok := c.plugin.book.nominated.Load(preemptor.UID); return !ok && c.used()[0] == 0 })
	if o, _ := c.schedule(t, pod("last", "berth.dev/licenses", "matlab").Obj()); len(o.Scores) != 2 {
		t.Errorf("a pod after its end: %v", o)
	}
}

// The dry run of a gang adds members to the state of their class, and says that it is a simulation when it reserves.
func TestADryRunSeesItsMembersAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c := newCluster(t, specs{"tools": twoMatlab}, twoPools()...)
	ctx, state := t.Context(), framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	p := pod("p", "berth.dev/licenses", "matlab").Obj()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, p); !status.IsSuccess() {
		t.Fatal(status)
	}
	info := c.framework.Infos(t)[0]
	for i, fits := range []bool{true, true, false} {
		if status := c.framework.RunFilterPlugins(ctx, state, p, info); status.IsSuccess() != fits {
			t.Errorf("with %d members placed: %v, want it to fit: %t", i, status, fits)
		}
		member, _ := framework.NewPodInfo(pod(fmt.Sprint("member-", i), "berth.dev/licenses", "matlab").Obj())
		if status := c.framework.RunPreFilterExtensionAddPod(ctx, state, p, member, info); !status.IsSuccess() {
			t.Fatal(status)
		}
		c.framework.RunReservePluginsReserve(ctx, state, member.Pod, info.Node().Name)
	}
	if diff := cmp.Diff([]int64{0}, c.used()); diff != "" {
		t.Errorf("used after the dry run (-want +got):\n%s", diff)
	}
}

// The queue may hear of a deletion before the ledger does: the pod that it wakes must find the license free.
func TestAHintFreesTheLicenseOfAPodThatIsGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, specs{"tools": `licenses: [{name: matlab, count: 1}]`}, twoPools()...)
	holder, user := pod("holder", "berth.dev/licenses", "matlab").Obj(), pod("user", "berth.dev/licenses", "matlab").Obj()
	if _, reason := c.place(t, holder, "a"); reason != "" {
		t.Fatal(reason)
	}
	if hint, err := c.plugin.afterPodChange(klog.Background(), user, holder, nil); err != nil || hint != fwk.Queue {
		t.Fatalf("hint is %v (%v)", hint, err)
	}
	if _, reason := c.place(t, user, "a"); reason != "" {
		t.Errorf("after the hint: %s", reason)
	}
	// A binding that failed for the scheduler alone is told in the same way, and the pod runs.
	user.Spec.NodeName = "a"
	c.create(t, user)
	plugintest.Await(t, "the binding", func() bool { return c.bound(user) })
	if _, err := c.plugin.afterPodChange(klog.Background(), pod("next", "berth.dev/licenses", "matlab").Obj(), user, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1}, c.used()); diff != "" {
		t.Errorf("used while the pod runs (-want +got):\n%s", diff)
	}
}

func TestPoliciesChangeWhilePodsAreReserved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, specs{"tools": twoMatlab}, twoPools()...)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.plugin.book.build(false)
			}
		}
	})
	for i := range 200 {
		p := pod(fmt.Sprint("p", i), "berth.dev/licenses", "matlab").Obj()
		c.create(t, p)
		state := framework.NewCycleState()
		if status := c.plugin.Reserve(t.Context(), state, p, "a"); status.IsSuccess() != (i < 2) {
			t.Errorf("pod %d: %v", i, status)
		}
	}
	close(stop)
	wg.Wait()
	if diff := cmp.Diff([]int64{2}, c.used()); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
}
