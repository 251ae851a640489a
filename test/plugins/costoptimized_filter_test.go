package plugins_test

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
)

func TestSpotFilter(t *testing.T) {
	t.Parallel()
	fleet := []runtime.Object{
		priced("on-demand", "20"),
		priced("reserved", "20", karpenterLabel, "reserved"),
		priced("spot", "10", karpenterLabel, "spot"),
		priced("gke-spot", "10", "cloud.google.com/gke-spot", "true"),
		stanceOf("cheap", "require"), stanceOf("plain", "avoid"), stanceOf("broken", "sometimes"),
	}
	onDemand, spot, all := []string{"on-demand", "reserved"}, []string{"gke-spot", "spot"}, []string{"gke-spot",
		"on-demand", "reserved", "spot"}
	tolerateByDefault := func(a *config.CostOptimizedArgs) { *a.Spot = "tolerate" }
	for name, tc := range map[string]struct {
		tune     func(*config.CostOptimizedArgs)
		pod      *v1.Pod
		want     []string
		rejected []string // parts of the message
	}{
		"a pod that says nothing avoids spot": {pod: eighth("p").Obj(), want: onDemand},
		"a pod that avoids spot": {tune: tolerateByDefault,
			pod: eighth("p").Annotation(spotKey, "avoid").Obj(), want: onDemand},
		"a pod that tolerates it": {pod: eighth("p").Annotation(spotKey, "tolerate").Obj(),
			want: all},
		"a pod that requires it": {pod: eighth("p").Annotation(spotKey, "require").Obj(),
			want: spot},
		"the profile's args speak for pods that say nothing": {tune: tolerateByDefault, pod: eighth("p").Obj(), want: all},
		"a PriorityClass speaks for its pods":                {pod: ofClass(eighth("p"), "cheap"), want: spot},
		"the pod's own word counts before its class's": {pod: ofClass(eighth("p").Annotation(spotKey, "avoid"),
			"cheap"), want: onDemand},
		"the class's word counts before the profile's": {tune: tolerateByDefault, pod: ofClass(eighth("p"), "plain"),
			want: onDemand},
		"a class that does not exist says nothing": {pod: ofClass(eighth("p"), "gone"), want: onDemand},
		"a node selector for spot tolerates it": {
			pod: eighth("p").NodeSelector(map[string]string{karpenterLabel: "spot"}).Obj(), want: all},
		"a toleration of a spot taint tolerates it": {pod: eighth("p").Toleration("cloud.google.com/gke-spot").Obj(),
			want: all},
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
			bubble(t, func(t *testing.T) {
				o := bill(t, tc.tune, fleet...).Cycle(t, tc.pod)
				if len(tc.rejected) > 0 {
					if o.Rejected.Code() != fwk.UnschedulableAndUnresolvable {
						t.Fatalf("PreFilter says %v, want the pod rejected for good", o.Rejected)
					}
					for _, part := range tc.rejected {
						if !strings.Contains(o.Rejected.Message(), part) {
							t.Errorf("message %q does not say %q", o.Rejected.Message(), part)
						}
					}
					return
				}
				if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(o.Totals()))); diff != "" {
					t.Errorf("nodes that the pod may run on (-want +got):\n%s", diff)
				}
				for node, reason := range o.Reasons() {
					if !strings.Contains(reason, spotKey) {
						t.Errorf("reason against %s does not name the annotation: %q", node, reason)
					}
				}
			})
		})
	}
}

func TestABadPriceIsReportedOnTheNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		event := bill(t, nil, priced("good", "3.06"), priced("bad", "$3.06")).event(t)
		for _, part := range []string{"Warning", "berth.dev/price-per-hour", `"$3.06"`, "decimal"} {
			if !strings.Contains(event, part) {
				t.Errorf("event %q does not say %q", event, part)
			}
		}
	})
}

func TestAPriorityClassThatChangesItsStanceWakesItsPods(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := bill(t, nil, stanceOf("cheap", "nonsense"), ofClass(eighth("waiting"), "cheap"),
			ofClass(eighth("of-another-class"), "plain"),
			ofClass(eighth("of-another-profile").SchedulerName("default-scheduler"), "cheap"),
			ofClass(eighth("running").Node("n"), "cheap"))
		// The class's coming may wake the pod once, whatever it says.
		pass(minute)
		b.Woken()
		classes := b.Client.SchedulingV1().PriorityClasses()
		for _, change := range []struct {
			to   *schedulingv1.PriorityClass
			want []string
		}{{stanceOf("cheap", "require"), []string{"waiting"}}, {stanceOf("cheap", "require"), nil},
			{stanceOf("cheap", "tolerate"), []string{"waiting"}}} {
			if _, err := classes.Update(t.Context(), change.to, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(minute)
			if diff := cmp.Diff(change.want, b.Woken(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		}
	})
}

// A scheduler that may not read PriorityClasses starts, without their stances, and has them once it may.
func TestPriorityClassesThatMayNotBeReadHaveNoStance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var allowed atomic.Bool
		setup := billSetup(nil, []runtime.Object{priced("on-demand", "20"), priced("spot", "10", karpenterLabel, "spot"),
			stanceOf("cheap", "require")})
		setup.Through = func(api http.RoundTripper) http.RoundTripper { return forbidding{api, "priorityclasses", &allowed} }
		b := startBilled(t, setup)
		for _, may := range []bool{false, true} {
			allowed.Store(may)
			pass(hour)
			want := map[bool]string{false: "on-demand", true: "spot"}[may]
			if got := b.Cycle(t, ofClass(eighth("p"), "cheap")).Totals(); len(got) != 1 || got[want] == 0 {
				t.Errorf("it may read the class: %t; the pod can run on %v, want %s", may, got, want)
			}
		}
	})
}

// forbidding is a connection to an API server that refuses reads of a resource until they are allowed.
type forbidding struct {
	http.RoundTripper
	resource string
	allowed  *atomic.Bool
}

func (f forbidding) RoundTrip(req *http.Request) (*http.Response, error) {
	if f.allowed.Load() || !strings.HasSuffix(req.URL.Path, "/"+f.resource) {
		return f.RoundTripper.RoundTrip(req)
	}
	status := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(status)), Request: req}, nil
}
