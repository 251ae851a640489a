package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/manifests"
)

func TestWhoSchedules(t *testing.T) {
	t.Parallel()
	shipped := func(o Options) string {
		data, err := manifests.Files.ReadFile(o.ShippedConfig())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const others = "; others stay pending, unless you start with --replace-default"
	for name, test := range map[string]struct{ configuration, want string }{
		"the shipped profiles serve pods that name one": {
			configuration: shipped(Options{}),
			want: "pods are scheduled if spec.schedulerName is one of gpu-aware-scheduler, cost-optimized-scheduler, " +
				"gang-scheduler, " +
				"scheduler-plugins-scheduler, berth-scheduler" + others,
		},
		"the replacement serves all": {
			configuration: shipped(Options{ReplaceDefault: true}),
			want: "pods are scheduled if spec.schedulerName is left out or one of gpu-aware-scheduler, " +
				"cost-optimized-scheduler, gang-scheduler, scheduler-plugins-scheduler, berth-scheduler, default-scheduler",
		},
		"a profile without a name is the default one": {
			configuration: "profiles: [{schedulerName: mine}, {}]",
			want:          "pods are scheduled if spec.schedulerName is left out or one of mine, default-scheduler",
		},
		"a configuration without profiles is the default one": {
			configuration: "kind: KubeSchedulerConfiguration",
			want:          "pods are scheduled if spec.schedulerName is left out or one of default-scheduler",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profiles, err := profilesOf([]byte(test.configuration))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, WhoSchedules(profiles)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got, want := WhoSchedules(nil),
		"no scheduler runs here: pods stay pending until you start one with this kubeconfig"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
