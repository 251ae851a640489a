package reservation

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/starttime"
	"berth.dev/berth/pkg/wellknown"
)

// A gang of four CPUs is to start in an hour on a node of four.
func TestWhoMayUseWhatIsKeptByTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	gangOf := func(pod *v1.Pod) gang.ID { return gang.ID{Namespace: "ns", Name: pod.Labels["gang"]} }
	pod := func(name, runs string) *v1.Pod {
		p := st.MakePod().Namespace("ns").Name(name).UID(name).Req(map[v1.ResourceName]string{v1.ResourceCPU: "4"}).Obj()
		p.CreationTimestamp.Time, p.Spec.RestartPolicy = now, v1.RestartPolicyNever
		p.Labels = map[string]string{"gang": name}
		if runs != "" {
			p.Annotations = map[string]string{wellknown.RunTimeKey: runs}
		}
		return p
	}
	service := pod("service", "")
	service.Spec.RestartPolicy = v1.RestartPolicyAlways
	for name, test := range map[string]struct {
		pod     *v1.Pod
		refused bool
		// beside is set if what is kept does not count against the pod at all.
		beside bool
	}{
		"a pod that is gone by then":           {pod: pod("short", "30m")},
		"a pod that is not":                    {pod: pod("long", "3h"), refused: true},
		"a service":                            {pod: service, refused: true},
		"a gang that comes before on the node": {pod: pod("earlier", "3h"), beside: true},
		"a gang that does not come before":     {pod: pod("elsewhere", "3h"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member, err := InfoOf(pod("m", ""))
			if err != nil {
				t.Fatal(err)
			}
			f := NewForecasts()
			f.GPUs, f.Group = func(*v1.Pod) int { return 0 }, func(*v1.Pod) *schedulingv1alpha1.PodGroup { return nil }
			p := &Holds{Gate: Gate{GangOf: gangOf, AllowsBackfill: func(*v1.Pod) bool { return false }, Filters: testFilters,
				Forecasts: f, Entry: starttime.Defaults()}}
			to := gang.ID{Namespace: "ns", Name: "g"}
			start := &starttime.Reservation{At: now, Start: runtimes.Certain(time.Hour), Until: now.Add(time.Hour)}
			p.Keep(to, forTurn, []Hold{{To: to, Kind: forTurn, Node: "n", Info: member, start: start,
				behind: map[gang.ID]bool{{Namespace: "ns", Name: "earlier"}: true}}})
			node := framework.NewNodeInfo()
			node.SetNode(st.MakeNode().Name("n").Capacity(map[v1.ResourceName]string{v1.ResourceCPU: "4",
				v1.ResourcePods: "110"}).Obj())
			if _, refused := p.Gate.Refuse(test.pod, node,
				nodesNamed{nodes: map[string]fwk.NodeInfo{"n": node}}); refused != test.refused {
				t.Errorf("refused: %v, want %v", refused, test.refused)
			}
			// The account of free capacity and the filter agree.
			if kept := p.Gate.Against(gangOf(test.pod), []*v1.Pod{test.pod}); (len(kept) > 0) != test.refused {
				t.Errorf("kept from the gang: %v, want %v", len(kept) > 0, test.refused)
			}
			if enters := p.Gate.Enters(test.pod, node); enters == test.beside {
				t.Errorf("it uses what is kept: %v, want %v", enters, !test.beside)
			}
		})
	}
}

func TestGPUTimeIsCountedByTheLeader(t *testing.T) {
	t.Parallel()
	metrics.NewKubeRegistry().MustRegister(gpuTime)
	now, leads := time.Now(), false
	f := NewForecasts()
	f.GPUs, f.Group = func(*v1.Pod) int { return 4 }, func(*v1.Pod) *schedulingv1alpha1.PodGroup { return nil }
	f.Leads = func() bool { return leads }
	lose := func(enters bool) {
		p := st.MakePod().Namespace("ns").Name("p").UID("p").Node("n").Obj()
		started := metav1.NewTime(now.Add(-time.Hour))
		p.Status.StartTime = &started
		if enters {
			f.Enter(p)
		}
		f.Lose(p, now)
	}
	lose(true)
	leads = true
	lose(true)
	lose(false)
	lose(false)
	for label, want := range map[string]float64{"true": 4 * 3600, "false": 8 * 3600} {
		if got, err := testutil.GetCounterMetricValue(gpuTime.WithLabelValues(label)); err != nil || got != want {
			t.Errorf("entered=%s: %v GPU seconds, %v; want %v", label, got, err, want)
		}
	}
	if len(f.entered) > 0 {
		t.Error("pods that have gone are remembered")
	}
}

func TestForecastsLearnFromPodsThatEndOnTheirOwn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := NewForecasts()
	f.GPUs, f.Group = func(*v1.Pod) int { return 1 }, func(*v1.Pod) *schedulingv1alpha1.PodGroup { return nil }
	lose := func(change func(*v1.Pod)) {
		p := st.MakePod().Namespace("ns").Name("p").UID("p").Node("n").Obj()
		p.Spec.RestartPolicy = v1.RestartPolicyNever
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
		p.Status.Conditions[0].LastTransitionTime.Time = now.Add(-time.Hour)
		change(p)
		f.Lose(p, now)
	}
	for range 100 {
		lose(func(p *v1.Pod) { p.DeletionTimestamp = &p.Status.Conditions[0].LastTransitionTime })
		lose(func(p *v1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget,
				Status: v1.ConditionTrue})
		})
		lose(func(p *v1.Pod) { p.Spec.NodeName = "" })
	}
	if f.Informed() {
		t.Error("pods that were deleted or evicted, or never ran, count as ended")
	}
	for range 100 {
		lose(func(*v1.Pod) {})
	}
	next := st.MakePod().Namespace("ns").Name("next").UID("next").Obj()
	next.Spec.RestartPolicy = v1.RestartPolicyNever
	left := f.Left(next, now)
	if middle := left.At(0.5); !f.Informed() || middle < 55*time.Minute || middle > 65*time.Minute {
		t.Errorf("informed: %v; half of the pods run for %s, want an hour", f.Informed(), middle)
	}
}

func TestARunOfAGangCountsOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		// ends are pods that end, one after the other: the gang, when they began and ended, in hours, and their image.
		ends []endedPod
		want uint64
	}{
		"members that end together":              {[]endedPod{{"a", 0, 3, "i"}, {"a", 0, 3, "i"}, {"a", 0, 3, "i"}}, 1},
		"members that end one after the other":   {[]endedPod{{"a", 0, 3, "i"}, {"a", 1, 5, "i"}, {"a", 2, 9, "i"}}, 1},
		"members that began after one had ended": {[]endedPod{{"a", 0, 3, "i"}, {"a", 4, 7, "i"}, {"a", 4, 7, "i"}}, 2},
		"members that are not alike":             {[]endedPod{{"a", 0, 3, "i"}, {"a", 0, 3, "j"}, {"a", 0, 3, "i"}}, 2},
		"two gangs":                              {[]endedPod{{"a", 0, 3, "i"}, {"b", 0, 3, "i"}, {"a", 0, 3, "i"}}, 2},
		"pods in no gang count one by one":       {[]endedPod{{"", 0, 3, "i"}, {"", 0, 3, "i"}, {"", 0, 3, "i"}}, 3},
		"more gangs than are remembered":         {otherGangs(mostCounted + 1), mostCounted + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewForecasts()
			f.GPUs, f.Group = func(*v1.Pod) int { return 1 }, func(*v1.Pod) *schedulingv1alpha1.PodGroup { return nil }
			f.Gang = func(p *v1.Pod) gang.ID {
				if p.Labels["gang"] == "" {
					return gang.ID{}
				}
				return gang.ID{Namespace: p.Namespace, Name: p.Labels["gang"]}
			}
			for _, end := range test.ends {
				f.Lose(end.pod(now), now.Add(time.Duration(end.ended)*time.Hour))
			}
			if _, learned, err := f.Dump(); err != nil || learned != test.want {
				t.Errorf("%d runs are known, %v; want %d", learned, err, test.want)
			}
			if len(f.counted) > mostCounted {
				t.Errorf("%d runs of gangs are remembered", len(f.counted))
			}
		})
	}
}

// endedPod is a pod of a gang and when it began and ended, in hours.
type endedPod struct {
	gang         string
	began, ended int
	image        string
}

func (e endedPod) pod(from time.Time) *v1.Pod {
	p := st.MakePod().Namespace("ns").Name("p").UID("p").Node("n").Container(e.image).Label("gang", e.gang).Obj()
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	began := metav1.NewTime(from.Add(time.Duration(e.began) * time.Hour))
	p.Status.StartTime = &began
	return p
}

func otherGangs(n int) []endedPod {
	out := make([]endedPod, n)
	for i := range out {
		out[i] = endedPod{fmt.Sprint("other", i), 0, 4, "i"}
	}
	return out
}

func TestAGangThatOutlivesWhatItDeclaresCountsOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := NewForecasts()
	f.GPUs, f.Group = func(*v1.Pod) int { return 1 }, func(*v1.Pod) *schedulingv1alpha1.PodGroup { return nil }
	f.Gang = func(*v1.Pod) gang.ID { return gang.ID{Namespace: "ns", Name: "a"} }
	for i := range 8 {
		p := endedPod{"a", -3, 0, "i"}.pod(now)
		p.UID, p.Annotations = apitypes.UID(fmt.Sprint(i)), map[string]string{wellknown.RunTimeKey: "1h"}
		f.Left(p, now)
	}
	if _, learned, err := f.Dump(); err != nil || learned != 1 {
		t.Errorf("%d runs are known, %v; want 1", learned, err)
	}
}

func TestTheLimitOfAControllerCountsIfItIsTheShorter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		own   *int64
		limit time.Duration
		want  time.Duration
	}{
		"none":                         {},
		"that of the controller":       {nil, time.Hour, time.Hour},
		"that of the pod, the shorter": {ptr.To[int64](60), time.Hour, time.Minute},
		"that of the pod, the longer":  {ptr.To[int64](7200), time.Hour, time.Hour},
		"that of the pod alone":        {ptr.To[int64](60), 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewForecasts()
			f.GPUs, f.Group = func(*v1.Pod) int { return 1 }, func(*v1.Pod) *schedulingv1alpha1.PodGroup { return nil }
			f.Limit = func(*v1.Pod) time.Duration { return test.limit }
			if claim := f.claimOf(&v1.Pod{Spec: v1.PodSpec{ActiveDeadlineSeconds: test.own}}); claim.Limit != test.want {
				t.Errorf("the limit is %v, want %v", claim.Limit, test.want)
			}
		})
	}
}
