package plugins_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
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
	}
	onDemand, all := []string{"on-demand", "reserved"}, []string{"gke-spot", "on-demand", "reserved", "spot"}
	tolerateByDefault := func(a *config.CostOptimizedArgs) { *a.Spot = "tolerate" }
	for name, tc := range map[string]struct {
		tune     func(*config.CostOptimizedArgs)
		pod      *v1.Pod
		want     []string
		rejected []string // parts of the message
	}{
		"a pod that avoids spot, whatever the args say": {tune: tolerateByDefault,
			pod: eighth("p").Annotation(spotKey, "avoid").Obj(), want: onDemand},
		"the profile's args speak for pods that say nothing": {tune: tolerateByDefault, pod: eighth("p").Obj(), want: all},
		"a node selector for spot tolerates it": {
			pod: eighth("p").NodeSelector(map[string]string{karpenterLabel: "spot"}).Obj(), want: all},
		"a DaemonSet's pod goes where its node is": {
			pod:  ofDaemonSet(eighth("p"), "n"),
			want: all,
		},
		"a pod that says something else stays pending": {
			pod:      eighth("p").Annotation(spotKey, "yes please").Obj(),
			rejected: []string{"pod annotation", spotKey, `"yes please"`, `"avoid", "tolerate", "require"`},
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
