package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/wellknown"
)

// minutes after now.
func minutes(m float64) time.Time { return now.Add(time.Duration(m * float64(time.Minute))) }

// began makes a pod one of a Job that began so long ago, and declares that run time if there is one.
func began(minutesAgo float64, job, declares string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: ptr.To(true)}}
		p.Spec.RestartPolicy = v1.RestartPolicyNever
		p.Status.StartTime = ptr.To(metav1.NewTime(minutes(-minutesAgo)))
		if declares != "" {
			p.Annotations[wellknown.RunTimeKey] = declares
		}
	}
}

// limited is a Job that ends its pods after that many minutes.
func limited(name string, minutes int64) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	j.Spec.ActiveDeadlineSeconds = ptr.To(60 * minutes)
	return j
}

// waitingGang is a PodGroup that was told to start in ten minutes, and has had the nodes for four if there are some.
func waitingGang(name string, nodes ...string) *schedulingv1alpha1.PodGroup {
	g := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name,
		Annotations: map[string]string{wellknown.RunTimeKey: "30m"}}}
	g.Status.EstimatedStart = &schedulingv1alpha1.PodGroupEstimatedStart{Time: metav1.NewTime(minutes(10)),
		Earliest: metav1.NewTime(minutes(-1)), Latest: metav1.NewTime(minutes(14))}
	if len(nodes) > 0 {
		g.Status.ReservedNodes = nodes
		g.Status.Conditions = []metav1.Condition{{Type: schedulingv1alpha1.PodGroupReserved, Status: metav1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(minutes(-4))}}
	}
	return g
}

// brief says a stay in a line, in minutes from now.
func briefStay(s *Stay) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "?"
		}
		return fmt.Sprintf("%.0f", t.Sub(now).Minutes())
	}
	text := fmt.Sprintf("%s %s %d pods %d nodes %d: %s", s.Kind, s.Workload, s.Pods, s.Nodes, s.MilliGPU, at(s.From))
	if s.Kind == StayReserved {
		text += fmt.Sprintf(" (%s to %s)", at(s.Earliest), at(s.Latest))
	}
	return fmt.Sprintf("%s until %s by %s, basis %d", text, at(s.To), at(s.By), s.Basis)
}

func TestThePlan(t *testing.T) {
	t.Parallel()
	oneGPU := "nvidia.com/gpu=1"
	member := func(name string) *v1.Pod {
		return pod(name, "", oneGPU, inGang("g"), func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
	}
	isService := func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyAlways }
	for _, tc := range []struct {
		name    string
		objects []any
		rows    [][]string
		want    []string
		waiting []string
	}{
		{"a pod that declares its run time ends then, nearly",
			[]any{pod("a", "n", oneGPU, began(10, "job", "40m"))}, [][]string{{"n"}},
			[]string{"running job 1 pods 1 nodes 1000: -10 until 26 by 53, basis 3"}, nil},
		{"one that has run for as long as it declares is expected to run on for a while",
			[]any{pod("a", "n", oneGPU, began(40, "job", "40m"))}, [][]string{{"n"}},
			[]string{"running job 1 pods 1 nodes 1000: -40 until 12 by 76, basis 3"}, nil},
		{"one that says nothing has no end that is known, and a service has none",
			[]any{pod("a", "n", oneGPU, began(10, "job", "")), pod("b", "n", oneGPU, began(5, "web", ""), isService)},
			[][]string{{"n"}},
			[]string{"running job 1 pods 1 nodes 1000: -10 until ? by ?, basis 0",
				"running web 1 pods 1 nodes 1000: -5 until ? by ?, basis 5"}, nil},
		{"pods of one workload are one, from the first to the end of the last",
			[]any{pod("a", "n", oneGPU, began(10, "job", "40m")), pod("b", "m", oneGPU, began(2, "job", "40m"))},
			[][]string{{"n", "m"}, {"m"}, {"other"}},
			[]string{"running job 2 pods 2 nodes 2000: -10 until 34 by 61, basis 3", "-",
				"running job 1 pods 1 nodes 1000: -2 until 34 by 61, basis 3", "-"}, nil},
		{"a gang is to have its nodes, and what started there meanwhile has backfilled",
			[]any{waitingGang("g", "n", "m"), member("g-0"), pod("a", "n", oneGPU, began(10, "before", "20m")),
				pod("b", "n", oneGPU, began(2, "small", "5m")), pod("c", "m", oneGPU, began(2, "more", "5m"))},
			[][]string{{"n"}},
			[]string{"running before 1 pods 1 nodes 1000: -10 until 8 by 22, basis 3",
				"backfilled small 1 pods 1 nodes 1000: -2 until 3 by 6, basis 3",
				"reserved g 0 pods 1 nodes 0: 10 (0 to 14) until 37 by 57, basis 3"}, nil},
		{"its own pods do not backfill",
			[]any{waitingGang("g", "n"), pod("g-0", "n", oneGPU, inGang("g"), began(2, "g", "5m"))}, [][]string{{"n"}},
			[]string{"running g 1 pods 1 nodes 1000: -2 until 3 by 6, basis 3",
				"reserved g 0 pods 1 nodes 0: 10 (0 to 14) until 15 by 18, basis 3"}, nil},
		{"a gang that was told a start and has no nodes comes apart", []any{waitingGang("g"), member("g-0")},
			[][]string{{"n"}}, nil,
			[]string{"reserved g 0 pods 0 nodes 0: 10 (0 to 14) until 37 by 57, basis 3"}},
		{"one whose pods are not there yet has no end", []any{waitingGang("g")}, nil, nil,
			[]string{"reserved g 0 pods 0 nodes 0: 10 (0 to 14) until ? by ?, basis 0"}},
		{"nodes that are kept without a start",
			[]any{func() any { g := waitingGang("g", "n"); g.Status.EstimatedStart = nil; return g }()}, [][]string{{"n"}},
			[]string{"reserved g 0 pods 1 nodes 0: ? (? to ?) until ? by ?, basis 0"}, nil},
		{"a gang whose Job has a limit ends by then",
			[]any{limited("job", 40), pod("a", "n", oneGPU, inGang("g"), began(10, "job", ""))}, [][]string{{"n"}},
			[]string{"running job 1 pods 1 nodes 1000: -10 until 15 by 27, basis 4"}, nil},
		{"the limit of a Job whose pods are no gang is not known to the scheduler",
			[]any{limited("job", 40), pod("a", "n", oneGPU, began(10, "job", ""))}, [][]string{{"n"}},
			[]string{"running job 1 pods 1 nodes 1000: -10 until ? by ?, basis 0"}, nil},
		{"a gang that was told nothing is not in it",
			[]any{func() any { g := waitingGang("g"); g.Status.EstimatedStart = nil; return g }()}, nil, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			plan := newBook(tc.objects...).Plan(tc.rows, now)
			var got, waiting []string
			for i := range plan.Rows {
				for j := range plan.Rows[i].Stays {
					got = append(got, briefStay(&plan.Rows[i].Stays[j]))
				}
				if len(plan.Rows) > 1 && len(plan.Rows[i].Stays) > 0 {
					got = append(got, "-")
				}
			}
			for i := range plan.Waiting {
				waiting = append(waiting, briefStay(&plan.Waiting[i]))
			}
			if diff := cmp.Diff([][]string{tc.want, tc.waiting}, [][]string{got, waiting}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARowOfThePlanIsBounded(t *testing.T) {
	t.Parallel()
	b := newBook()
	for i := range mostStays + 3 {
		b.SetPod(pod(fmt.Sprint("p", i), "n", fmt.Sprintf("nvidia.com/gpu=%d", i+1), began(1, fmt.Sprint("job-x", i), "")))
	}
	for i := range mostWaiting + 3 {
		b.SetPodGroup(waitingGang(fmt.Sprint("g", i)))
	}
	plan := b.Plan([][]string{{"n"}}, now)
	if row := plan.Rows[0]; len(row.Stays) != mostStays || row.More != 3 || row.Stays[0].MilliGPU < 4000 {
		t.Errorf("%d workloads and %d more, the first is %+v", len(row.Stays), row.More, row.Stays[0])
	}
	if len(plan.Waiting) != mostWaiting {
		t.Errorf("%d gangs wait", len(plan.Waiting))
	}
}

func TestThePlanKnowsWhatTheSchedulerHasLearned(t *testing.T) {
	t.Parallel()
	learned := runtimes.NewBook()
	for range 8 {
		learned.Ended(&runtimes.Class{Namespace: "team", Controller: "job", GPUs: 1}, &runtimes.Claim{}, 20*time.Minute)
	}
	content, err := learned.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b := newBook(pod("a", "n", "nvidia.com/gpu=1", began(5, "job-17", "")))
	stay := func() Stay { return b.Plan([][]string{{"n"}}, now).Rows[0].Stays[0] }
	if s := stay(); s.Ends() {
		t.Errorf("nothing is known, and the pod is to end at %s", s.To)
	}
	b.SetRunTimes(content, "")
	if s := stay(); s.Basis != runtimes.FromItsRuns || s.To.Sub(minutes(15)).Abs() > time.Minute {
		t.Errorf("the pod is to end at %s, want %s", s.To, minutes(15))
	}
	for _, tc := range []struct {
		name, content, unread, want string
	}{
		{"what may not be read", "", "configmaps is forbidden", "configmaps is forbidden"},
		{"what is no book", "x", "", "is not a book of run times"},
		{"nothing written yet", "", "", ""},
	} {
		b.SetRunTimes([]byte(tc.content), tc.unread)
		if got := b.Plan(nil, now).Unread; !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if s := stay(); s.Ends() {
			t.Errorf("%s: the pod is to end at %s", tc.name, s.To)
		}
	}
}
