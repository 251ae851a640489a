package plugins_test

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/slaaware"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
)

// prometheus answers queries as a Prometheus does, by the labels of a metric what answer has for the query. It ends its
// connections, for virtual time does not advance while one is open.
func prometheus(t *testing.T, answer func(query string) map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("parsing query: %v", err)
		}
		var samples []string
		for labels, value := range answer(r.Form.Get("query")) {
			samples = append(samples, fmt.Sprintf(`{"metric":{%s},"value":[%d,%q]}`, labels, time.Now().Unix(), value))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
	}))
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// ofNodes has the labels of nodes in the place of their names.
func ofNodes(byName map[string]string) map[string]string {
	byLabels := map[string]string{}
	for name, value := range byName {
		byLabels[fmt.Sprintf(`"node":%q`, name)] = value
	}
	return byLabels
}

// startSLA runs SLAAware alone on nodes that differ in nothing but their names.
func startSLA(t *testing.T, signals *config.SLOSignals, nodes ...string) *framework.Scheduler {
	t.Helper()
	args := &config.SLAAwareArgs{Signals: signals, HeadroomPercent: new(int32(20))}
	args.SetDefaults()
	setup := framework.Setup{
		Profile: framework.Alone("slo-scheduler", slaaware.Name, args),
		Plugins: frameworkruntime.Registry{slaaware.Name: slaaware.New},
	}
	for _, name := range nodes {
		setup.Objects = append(setup.Objects, objects.Node(name, "cpu", "8").Obj())
	}
	return framework.Start(t, setup)
}

// pointsOf are the points of the nodes, nil where the plugin has no say. What the plugin says of a node adds up to its
// points.
func pointsOf(t *testing.T, s *framework.Scheduler, pod *v1.Pod) map[string]int64 {
	t.Helper()
	plugin, o := framework.Plugin[*slaaware.Plugin](t, s), s.Cycle(t, pod)
	if o.Rejected != nil {
		t.Fatal(o.Rejected)
	}
	if o.State.GetSkipScorePlugins().Has(slaaware.Name) {
		return nil
	}
	for _, info := range s.Infos(t) {
		raw, status := plugin.Score(t.Context(), o.State, pod, info)
		cost, err := plugin.Terms(t.Context(), o.State, pod, info)
		sum := 0.0
		for _, term := range cost.Terms {
			sum += term.Amount
		}
		if !status.IsSuccess() || err != nil || int64(math.Round(sum*1000)) != raw {
			t.Errorf("node %s: raw score %d, terms %v, %v, %v", info.Node().Name, raw, cost.Terms, status, err)
		}
	}
	return o.Totals()
}

func podWithObjective(annotations map[string]string) *v1.Pod {
	return objects.Pod("p").SchedulerName("slo-scheduler").Annotations(annotations).Obj()
}

func TestNodesAreScoredByWhatIsMeasured(t *testing.T) {
	t.Parallel()
	byQuery := map[string]map[string]string{
		"latency":    {"best": "80", "fast": "40", "tight": "90", "slow": "200", "slower": "400"},
		"throughput": {"best": "1000", "fast": "400", "slow": "5000"},
	}
	server := prometheus(t, func(query string) map[string]string { return ofNodes(byQuery[query]) })
	synctest.Test(t, func(t *testing.T) {
		signals := &config.SLOSignals{Prometheus: config.Prometheus{URL: server.URL}, LatencyMsQuery: "latency",
			ThroughputQuery: "throughput"}
		s := startSLA(t, signals, "best", "fast", "tight", "slow", "slower", "unmeasured")
		pass(time.Minute)
		for _, tc := range []struct {
			name        string
			annotations map[string]string
			want        map[string]int64
		}{
			{"a pod without an objective", nil, nil},
			{"a latency", map[string]string{wellknown.SLOLatencyKey: "100"},
				map[string]int64{"best": 100, "fast": 90, "tight": 80, "unmeasured": 50, "slow": 30, "slower": 20}},
			{"a throughput", map[string]string{wellknown.SLOThroughputKey: "800"},
				map[string]int64{"best": 100, "slow": 84, "tight": 50, "slower": 50, "unmeasured": 50, "fast": 30}},
			{"both", map[string]string{wellknown.SLOLatencyKey: "100", wellknown.SLOThroughputKey: "800"},
				map[string]int64{"best": 100, "tight": 50, "unmeasured": 50, "slow": 30, "fast": 30, "slower": 20}},
		} {
			if diff := cmp.Diff(tc.want, pointsOf(t, s, podWithObjective(tc.annotations))); diff != "" {
				t.Errorf("%s: points (-want +got):\n%s", tc.name, diff)
			}
		}
		server.Close()
		pass(time.Minute)
		picky := podWithObjective(map[string]string{wellknown.SLOLatencyKey: "100"})
		if points := pointsOf(t, s, picky); points == nil {
			t.Error("figures of a minute ago do not count")
		}
		pass(time.Hour)
		if points := pointsOf(t, s, picky); points != nil {
			t.Errorf("an hour after the last answer: points %v, want none", points)
		}
	})
}

// A node on which nothing runs any more is not one with the figures of its last pod.
func TestANodeThatIsNoLongerMeasuredIsUnknown(t *testing.T) {
	t.Parallel()
	var ended atomic.Bool
	server := prometheus(t, func(string) map[string]string {
		if ended.Load() {
			return ofNodes(map[string]string{"busy": "80"})
		}
		return ofNodes(map[string]string{"busy": "80", "idle": "80"})
	})
	synctest.Test(t, func(t *testing.T) {
		signals := &config.SLOSignals{Prometheus: config.Prometheus{URL: server.URL}, LatencyMsQuery: "latency"}
		s, pod := startSLA(t, signals, "busy", "idle"), podWithObjective(map[string]string{wellknown.SLOLatencyKey: "100"})
		pass(time.Minute)
		if diff := cmp.Diff(map[string]int64{"busy": 100, "idle": 100}, pointsOf(t, s, pod)); diff != "" {
			t.Errorf("points of nodes that are measured (-want +got):\n%s", diff)
		}
		ended.Store(true)
		pass(time.Minute)
		if diff := cmp.Diff(map[string]int64{"busy": 100, "idle": 50}, pointsOf(t, s, pod)); diff != "" {
			t.Errorf("points after the measurements of a node have ended (-want +got):\n%s", diff)
		}
	})
}

func TestWithoutFiguresThePluginHasNoSay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := startSLA(t, nil, "a", "b")
		if points := pointsOf(t, s, podWithObjective(map[string]string{wellknown.SLOLatencyKey: "100"})); points != nil {
			t.Errorf("points %v, want none", points)
		}
	})
}

func TestPodsOfOneObjectiveAreAlike(t *testing.T) {
	bubble(t, func(t *testing.T) {
		plugin := framework.Plugin[*slaaware.Plugin](t, startSLA(t, nil, "a"))
		signatures := map[string]bool{}
		for _, latency := range []string{"20", "20.0", "30"} {
			fragments, status := plugin.SignPod(t.Context(),
				podWithObjective(map[string]string{wellknown.SLOLatencyKey: latency}))
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			signatures[fmt.Sprint(fragments)] = true
		}
		if len(signatures) != 2 {
			t.Errorf("signatures %v, want one for 20 and one for 30", slices.Collect(maps.Keys(signatures)))
		}
		bad := podWithObjective(map[string]string{wellknown.SLOLatencyKey: "fast"})
		if _, status := plugin.SignPod(t.Context(), bad); status.IsSuccess() {
			t.Error("a pod that cannot be understood is signed")
		}
	})
}

func TestSLAArgsThatAreWrongStopTheStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := startSLA(t, nil, "a")
		for _, tc := range []struct {
			name string
			args runtime.Object
			want string
		}{
			{"no query", &config.SLAAwareArgs{Signals: &config.SLOSignals{Prometheus: config.Prometheus{URL: "http://p"}}},
				"profiles[slo-scheduler].pluginConfig[SLAAware].args.signals: Required value: want latencyMsQuery, " +
					"throughputQuery or both"},
			{"labels for queries of one's own", &config.SLAAwareArgs{Signals: &config.SLOSignals{LatencyMsQuery: "x",
				Prometheus: config.Prometheus{URL: "http://p", MatchLabels: map[string]string{"a": "b"}}}},
				"profiles[slo-scheduler].pluginConfig[SLAAware].args.signals.prometheus.matchLabels: Forbidden: has no effect on " +
					"queries of your own: write the labels into them"},
			{"too much headroom", &config.SLAAwareArgs{HeadroomPercent: new(int32(91))},
				"profiles[slo-scheduler].pluginConfig[SLAAware].args.headroomPercent: Invalid value: 91: want a whole number " +
					"from 0 to 90"},
			{"args of another plugin", &config.GPUAwareArgs{},
				"reading args of profile slo-scheduler: want SLAAwareArgs, got *config.GPUAwareArgs"},
		} {
			if a, ok := tc.args.(*config.SLAAwareArgs); ok {
				a.SetDefaults()
			}
			if _, err := slaaware.New(t.Context(), tc.args, s); err == nil || err.Error() != tc.want {
				t.Errorf("%s: error %v, want %s", tc.name, err, tc.want)
			}
		}
	})
}
