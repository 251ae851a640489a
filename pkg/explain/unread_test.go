package explain

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/test/harness/require"
)

func TestAnnotationsThatTheProfileDoesNotReadAreNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, profile string
		annotations   map[string]string
		without       string
		want          []string
	}{
		{name: "a profile with all plugins", profile: "berth-scheduler",
			annotations: map[string]string{"berth.dev/datasets": "imagenet"}},
		{name: "a profile without IPReservation", profile: "berth-scheduler", without: "IPReservation",
			annotations: map[string]string{"berth.dev/ip-pool": "racks"},
			want: []string{"annotation berth.dev/ip-pool has no effect, because IPReservation is not enabled: the pod " +
				"gets no address of the pool"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			configuration := shipped(t)
			for i := range configuration.Component.Profiles {
				enabled := &configuration.Component.Profiles[i].Plugins.MultiPoint.Enabled
				*enabled = slices.DeleteFunc(*enabled, func(p schedulerconfig.Plugin) bool { return p.Name == tt.without })
			}
			p := pod("p", "", "1", 0)
			p.Spec.SchedulerName, p.Annotations = tt.profile, tt.annotations
			e, err := Pod(Question{Configuration: configuration, Objects: []runtime.Object{node("a", "8")}, Pod: p, Now: now})
			require.NoError(t, err)
			var got []string
			for _, note := range e.Notes {
				if strings.Contains(note, "annotation") {
					got = append(got, note)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("notes %q, want %q", got, tt.want)
			}
		})
	}
}
