package costoptimized

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
)

func priorityClass(name, spot string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{spotKey: spot}}}
}

func ofClass(pod *st.PodWrapper, class string) *v1.Pod {
	pod.Spec.PriorityClassName = class
	return pod.Obj()
}

func TestSpotFilter(t *testing.T) {
	t.Parallel()
	fleet := []runtime.Object{
		node("on-demand", "20"),
		node("reserved", "20", karpenterLabel, "reserved"),
		node("spot", "10", karpenterLabel, "spot"),
		node("gke-spot", "10", "cloud.google.com/gke-spot", "true"),
		priorityClass("cheap", "require"), priorityClass("plain", "avoid"), priorityClass("broken", "sometimes"),
	}
	onDemand, spot, all := []string{"on-demand", "reserved"}, []string{"gke-spot", "spot"}, []string{"gke-spot", "on-demand", "reserved", "spot"}
	tolerateByDefault := func(a *config.CostOptimizedArgs) { *a.Spot = "tolerate" }
	for name, tc := range map[string]struct {
		tune     func(*config.CostOptimizedArgs)
		pod      *v1.Pod
		want     []string
		rejected []string // parts of the message
	}{
		"a pod that says nothing avoids spot":                {pod: eighth("p").Obj(), want: onDemand},
		"a pod that avoids spot":                             {tune: tolerateByDefault, pod: eighth("p").Annotation(spotKey, "avoid").Obj(), want: onDemand},
		"a pod that tolerates it":                            {pod: eighth("p").Annotation(spotKey, "tolerate").Obj(), want: all},
		"a pod that requires it":                             {pod: eighth("p").Annotation(spotKey, "require").Obj(), want: spot},
		"the profile's args speak for pods that say nothing": {tune: tolerateByDefault, pod: eighth("p").Obj(), want: all},
		"a PriorityClass speaks for its pods":                {pod: ofClass(eighth("p"), "cheap"), want: spot},
		"the pod's own word counts before its class's":       {pod: ofClass(eighth("p").Annotation(spotKey, "avoid"), "cheap"), want: onDemand},
		"the class's word counts before the profile's":       {tune: tolerateByDefault, pod: ofClass(eighth("p"), "plain"), want: onDemand},
		"a class that does not exist says nothing":           {pod: ofClass(eighth("p"), "gone"), want: onDemand},
		"a node selector for spot tolerates it":              {pod: eighth("p").NodeSelector(map[string]string{karpenterLabel: "spot"}).Obj(), want: all},
		"a toleration of a spot taint tolerates it":          {pod: eighth("p").Toleration("cloud.google.com/gke-spot").Obj(), want: all},
		"a DaemonSet's pod goes where its node is": {
			pod:  ofDaemonSet(eighth("p"), "n"),
			want: all,
		},
		"a pod that says something else stays pending": {
			pod:      eighth("p").Annotation(spotKey, "yes please").Obj(),
			rejected: []string{"pod annotation", spotKey, `"yes please"`, `"avoid", "tolerate", "require"`},
		},
		"so does one that says it with an empty value": {
			pod:      eighth("p").Annotation(spotKey, "").Obj(),
			rejected: []string{spotKey, `""`},
		},
		"and one whose class says something else": {
			pod:      ofClass(eighth("p"), "broken"),
			rejected: []string{"PriorityClass broken", spotKey, `"sometimes"`},
		},
		"rules in the args replace those built in": {
			tune: func(a *config.CostOptimizedArgs) {
				a.CapacityTypes = []config.CapacityTypeRule{{Label: karpenterLabel, Values: []string{"reserved"}, Type: "spot"}}
			},
			pod:  eighth("p").Obj(),
			want: []string{"gke-spot", "on-demand", "spot"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scores, reasons, rejected := newCluster(t, tc.tune, fleet).schedule(t, tc.pod)
			if len(tc.rejected) > 0 {
				if rejected.Code() != fwk.UnschedulableAndUnresolvable {
					t.Fatalf("PreFilter says %v, want the pod rejected for good", rejected)
				}
				for _, part := range tc.rejected {
					if !strings.Contains(rejected.Message(), part) {
						t.Errorf("message %q does not say %q", rejected.Message(), part)
					}
				}
				return
			}
			if rejected != nil {
				t.Fatal(rejected)
			}
			if diff := cmp.Diff(tc.want, sorted(scores)); diff != "" {
				t.Errorf("nodes that the pod may run on (-want +got):\n%s", diff)
			}
			for node, reason := range reasons {
				if !strings.Contains(reason, spotKey) {
					t.Errorf("reason against %s does not name the annotation: %q", node, reason)
				}
			}
		})
	}
}

func TestABadPriceIsReportedOnTheNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil, []runtime.Object{node("good", "3.06"), node("bad", "$3.06")})
	event := next(t, c.recorder.Events, "an event for the node with a bad price")
	for _, part := range []string{"Warning", "berth.dev/price-per-hour", `"$3.06"`, "decimal"} {
		if !strings.Contains(event, part) {
			t.Errorf("event %q does not say %q", event, part)
		}
	}
}

func TestAPriorityClassThatChangesItsStanceWakesItsPods(t *testing.T) {
	t.Parallel()
	waiting := ofClass(eighth("waiting"), "cheap")
	c := newCluster(t, nil, []runtime.Object{
		priorityClass("cheap", "nonsense"), waiting,
		ofClass(eighth("of-another-class"), "plain"),
		ofClass(eighth("of-another-profile").SchedulerName("default-scheduler"), "cheap"),
		ofClass(eighth("running").Node("n"), "cheap"),
	})
	// What the fake API server is told between an informer's list and its watch is lost, so it is told until it is heard.
	// The class's coming may wake the pod once, whatever it says; twice only a change does.
	stances, woken := []string{"require", "tolerate"}, 0
	for i := range 600 {
		_, err := c.client.SchedulingV1().PriorityClasses().Update(t.Context(), priorityClass("cheap", stances[i%2]), metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-c.activator.woken:
			if got != "default/waiting" {
				t.Fatalf("%s was woken, want only default/waiting", got)
			}
			if woken++; woken == 2 {
				return
			}
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("the pod was not woken by the change")
}

func expectWoken(t *testing.T, c *cluster, want string) {
	t.Helper()
	if got := next(t, c.activator.woken, "pod "+want+" to be woken"); got != want {
		t.Fatalf("%s was woken, want %s", got, want)
	}
}
