package sandbox

import (
	"testing"

	"berth.dev/berth/test/harness/assert"
)

func TestWhoSchedules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		profiles []string
		want     string
	}{
		"profiles serve pods that name one": {[]string{"a", "b"},
			"pods are scheduled if spec.schedulerName is one of a, b; others stay pending, unless you start with " +
				"--replace-default"},
		"the default profile serves all": {[]string{"a", "default-scheduler"},
			"pods are scheduled if spec.schedulerName is left out or one of a, default-scheduler"},
		"none serves none": {nil, "no scheduler runs here: pods stay pending until you start one with this kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "", test.want, WhoSchedules(test.profiles))
		})
	}
}
