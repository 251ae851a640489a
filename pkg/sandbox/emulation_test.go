package sandbox

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

func TestComponentsEmulateTheVersionOfAnOlderAPIServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ printed, want, fails string }{
		"the same minor needs none":       {printed: "Kubernetes v1.37.4\n"},
		"one minor older":                 {printed: "Kubernetes v1.36.3\n", want: "1.36"},
		"the oldest that can be emulated": {printed: "Kubernetes v1.34.4\n", want: "1.34"},
		"a build of somebody else":        {printed: "Kubernetes v1.35.2-gke.100\n", want: "1.35"},
		"too old": {printed: "Kubernetes v1.33.0\n",
			fails: "its version is 1.33; must be 1.34 to 1.37"},
		"newer than we are": {printed: "Kubernetes v1.38.0\n",
			fails: "its version is 1.38; must be 1.34 to 1.37"},
		"another major version":         {printed: "Kubernetes v2.35.0\n", fails: "its version is 2.35"},
		"a build without a version":     {printed: "Kubernetes v0.0.0-master+$Format:%H$\n", fails: "must be"},
		"another program":               {printed: "bash 5\n", fails: "must be Kubernetes and its version"},
		"a program that prints nothing": {printed: "", fails: `--version prints ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := emulation("/bin/kube-apiserver", tc.printed, version.MustParse("1.37"))
			if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("version %q, error %v; want %q, %q", got, err, tc.want, tc.fails)
			}
		})
	}
}
