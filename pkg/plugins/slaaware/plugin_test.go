package slaaware

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	tf "k8s.io/kubernetes/pkg/scheduler/testing/framework"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/test/harness/leak"
)

const profile = "slo-scheduler"

func TestMain(m *testing.M) {
	metrics.Register()
	leak.Main(m)
}

// figureServer answers queries as a Prometheus does, by node what is given for the query.
func figureServer(t *testing.T, byQuery map[string]map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("parsing query: %v", err)
		}
		var samples []string
		for name, value := range byQuery[r.Form.Get("query")] {
			samples = append(samples, fmt.Sprintf(`{"metric":{"node":%q},"value":[%d,%q]}`, name, time.Now().Unix(), value))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
	}))
	t.Cleanup(server.Close)
	return server
}

// cluster is a scheduler framework with SLAAware alone in one profile, on a snapshot of nodes.
type cluster struct {
	framework framework.Framework
	infos     []fwk.NodeInfo
	plugin    *Plugin
}

func newCluster(t *testing.T, c clock.PassiveClock, signals *config.SLOSignals, nodes ...string) *cluster {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	t.Cleanup(cancel)
	args := &config.SLAAwareArgs{Signals: signals, HeadroomPercent: new(int32)}
	*args.HeadroomPercent = 20
	config.SetDefaultsSLAAwareArgs(args)
	var objects []runtime.Object
	var all []*v1.Node
	for _, name := range nodes {
		node := st.MakeNode().Name(name).UID(name).Capacity(map[v1.ResourceName]string{"cpu": "8", "pods": "110"}).Obj()
		objects, all = append(objects, node), append(all, node)
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	snapshot := cache.NewSnapshot(nil, all)
	var plugin *Plugin
	remember := func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		// The first round of queries asks for the nodes.
		handle.SharedInformerFactory().Core().V1().Nodes().Informer()
		factory.StartWithContext(ctx)
		factory.WaitForCacheSync(ctx.Done())
		made, err := New(ctx, obj, handle)
		if err == nil {
			plugin = made.(*Plugin)
			plugin.clock = c
		}
		return made, err
	}
	f, err := tf.NewFramework(ctx, []tf.RegisterPluginFunc{
		tf.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		tf.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		tf.RegisterPluginAsExtensionsWithWeight(Name, 1, remember, "PreFilter", "PreScore", "Score"),
		func(_ *frameworkruntime.Registry, p *schedulerapi.KubeSchedulerProfile) {
			p.PluginConfig = []schedulerapi.PluginConfig{{Name: Name, Args: args}}
		},
	}, profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
	)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	out := &cluster{framework: f, infos: infos, plugin: plugin}
	if signals == nil {
		return out
	}
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return plugin.reader.Snapshot().Any(time.Now()), nil
	})
	if err != nil {
		t.Fatalf("waiting for figures: %v", err)
	}
	return out
}

// schedule runs a pod through the extension points and returns the points of the nodes, nil where the plugin has no say, or
// why PreFilter rejects the pod.
func (c *cluster) schedule(t *testing.T, pod *v1.Pod) (map[string]int64, *fwk.Status) {
	t.Helper()
	ctx, state := t.Context(), framework.NewCycleState()
	if _, status, _ := c.framework.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() && !status.IsSkip() {
		return nil, status
	}
	// One node alone: what PreScore is given does not matter.
	if status := c.framework.RunPreScorePlugins(ctx, state, pod, c.infos[:1]); !status.IsSuccess() {
		t.Fatalf("PreScore: %v", status)
	}
	if state.GetSkipScorePlugins().Has(Name) {
		return nil, nil
	}
	byNode, status := c.framework.RunScorePlugins(ctx, state, pod, c.infos)
	if !status.IsSuccess() {
		t.Fatalf("Score: %v", status)
	}
	points := map[string]int64{}
	for _, n := range byNode {
		points[n.Name] = n.TotalScore
	}
	for _, info := range c.infos {
		raw, status := c.plugin.Score(ctx, state, pod, info)
		cost, err := c.plugin.Terms(ctx, state, pod, info)
		sum := 0.0
		for _, term := range cost.Terms {
			sum += term.Amount
		}
		if !status.IsSuccess() || err != nil || int64(math.Round(sum*1000)) != raw {
			t.Errorf("node %s: raw score %d, terms %v, %v, %v", info.Node().Name, raw, cost.Terms, status, err)
		}
	}
	return points, nil
}

func podWith(annotations map[string]string) *v1.Pod {
	return st.MakePod().Namespace("default").Name("p").UID("p").SchedulerName(profile).Annotations(annotations).Obj()
}

func TestNodesAreScoredByWhatIsMeasured(t *testing.T) {
	t.Parallel()
	server := figureServer(t, map[string]map[string]string{
		"latency":    {"best": "80", "fast": "40", "tight": "90", "slow": "200", "slower": "400"},
		"throughput": {"best": "1000", "fast": "400", "slow": "5000"},
	})
	now := clocktesting.NewFakePassiveClock(time.Now())
	c := newCluster(t, now, &config.SLOSignals{Prometheus: config.Prometheus{URL: server.URL}, LatencyMsQuery: "latency", ThroughputQuery: "throughput"},
		"best", "fast", "tight", "slow", "slower", "unmeasured")
	for _, tc := range []struct {
		name        string
		annotations map[string]string
		want        map[string]int64
	}{
		{"a pod without an objective", nil, nil},
		{"a latency", map[string]string{kubeview.SLOLatencyKey: "100"},
			map[string]int64{"best": 100, "fast": 90, "tight": 80, "unmeasured": 50, "slow": 30, "slower": 20}},
		{"a throughput", map[string]string{kubeview.SLOThroughputKey: "800"},
			map[string]int64{"best": 100, "slow": 84, "tight": 50, "slower": 50, "unmeasured": 50, "fast": 30}},
		{"both", map[string]string{kubeview.SLOLatencyKey: "100", kubeview.SLOThroughputKey: "800"},
			map[string]int64{"best": 100, "tight": 50, "unmeasured": 50, "slow": 30, "fast": 30, "slower": 20}},
	} {
		points, rejected := c.schedule(t, podWith(tc.annotations))
		if diff := cmp.Diff(tc.want, points); diff != "" || rejected != nil {
			t.Errorf("%s: rejected %v, points (-want +got):\n%s", tc.name, rejected, diff)
		}
	}
	// A cycle that has begun keeps to its figures; the next one sees that they have grown too old.
	now.SetTime(time.Now().Add(time.Hour))
	if points, _ := c.schedule(t, podWith(map[string]string{kubeview.SLOLatencyKey: "100"})); points != nil {
		t.Errorf("an hour after the last answer: points %v, want none", points)
	}
}

func TestWithoutFiguresThePluginHasNoSay(t *testing.T) {
	t.Parallel()
	c := newCluster(t, clock.RealClock{}, nil, "a", "b")
	if points, rejected := c.schedule(t, podWith(map[string]string{kubeview.SLOLatencyKey: "100"})); points != nil || rejected != nil {
		t.Errorf("points %v, rejected %v; want none", points, rejected)
	}
}

func TestAnObjectiveThatCannotBeReadKeepsThePodPending(t *testing.T) {
	t.Parallel()
	c := newCluster(t, clock.RealClock{}, nil, "a")
	bad, good := podWith(map[string]string{kubeview.SLOLatencyKey: "fast"}), podWith(map[string]string{kubeview.SLOLatencyKey: "20"})
	_, rejected := c.schedule(t, bad)
	const want = `pod annotation berth.dev/slo-latency-ms: "fast" is not a decimal number above 0 and at most 1000000000, such as 250 or 0.5`
	if rejected.Code() != fwk.UnschedulableAndUnresolvable || rejected.Message() != want {
		t.Errorf("rejected with %v %q, want %q", rejected.Code(), rejected.Message(), want)
	}
	if _, status := c.plugin.SignPod(t.Context(), bad); status.IsSuccess() {
		t.Error("a pod that cannot be understood is signed")
	}
	events, err := c.plugin.EventsToRegister(t.Context())
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, tc := range []struct {
		name       string
		old, later *v1.Pod
		want       fwk.QueueingHint
	}{
		{"put right", bad, good, fwk.Queue}, {"still wrong", bad, bad, fwk.QueueSkip}, {"right all along", good, good, fwk.QueueSkip},
	} {
		if got, err := events[0].QueueingHintFn(klog.Background(), bad, tc.old, tc.later); got != tc.want || err != nil {
			t.Errorf("%s: hint %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}
}

func TestPodsOfOneObjectiveAreAlike(t *testing.T) {
	t.Parallel()
	c := newCluster(t, clock.RealClock{}, nil, "a")
	signatures := map[string]bool{}
	for _, latency := range []string{"20", "20.0", "30"} {
		fragments, status := c.plugin.SignPod(t.Context(), podWith(map[string]string{kubeview.SLOLatencyKey: latency}))
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		signatures[fmt.Sprint(fragments)] = true
	}
	if len(signatures) != 2 {
		t.Errorf("signatures %v, want one for 20 and one for 30", slices.Collect(maps.Keys(signatures)))
	}
}

func TestArgsThatAreWrongStopTheStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		args runtime.Object
		want string
	}{
		{"no query", &config.SLAAwareArgs{Signals: &config.SLOSignals{Prometheus: config.Prometheus{URL: "http://p"}}},
			"profiles[p].pluginConfig[SLAAware].args.signals: Required value: want latencyMsQuery, throughputQuery or both"},
		{"labels for queries of one's own", &config.SLAAwareArgs{Signals: &config.SLOSignals{LatencyMsQuery: "x",
			Prometheus: config.Prometheus{URL: "http://p", MatchLabels: map[string]string{"a": "b"}}}},
			"profiles[p].pluginConfig[SLAAware].args.signals.prometheus.matchLabels: Forbidden: has no effect on queries of your own: write the labels into them"},
		{"too much headroom", &config.SLAAwareArgs{HeadroomPercent: func() *int32 { n := int32(91); return &n }()},
			"profiles[p].pluginConfig[SLAAware].args.headroomPercent: Invalid value: 91: want a whole number from 0 to 90"},
		{"args of another plugin", &config.GPUAwareArgs{}, "reading args of profile p: want SLAAwareArgs, got *config.GPUAwareArgs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if a, ok := tc.args.(*config.SLAAwareArgs); ok {
				config.SetDefaultsSLAAwareArgs(a)
			}
			if _, err := readArgs(tc.args, "p"); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
