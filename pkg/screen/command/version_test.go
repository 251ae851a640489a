package command

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		info version.Info
		want string
	}{
		"a release": {
			version.Info{GitVersion: "v1.37.1-berth.0.1.0", GitCommit: "abc", GitTreeState: "clean",
				BuildDate: "2026-01-05T00:00:00Z", GoVersion: "go1.26.0", Platform: "linux/amd64"},
			"Berth       v0.1.0\nKubernetes  v1.37.1\nCommit      abc\nBuilt       2026-01-05T00:00:00Z\n" +
				"Go          go1.26.0\nPlatform    linux/amd64\n",
		},
		"a build of a changed tree": {
			version.Info{GitVersion: "v1.37.1-berth.0.1.0-rc.1", GitCommit: "abc", GitTreeState: "dirty", GoVersion: "go1.26.0",
				Platform: "linux/arm64"},
			"Berth       v0.1.0-rc.1\nKubernetes  v1.37.1\nCommit      abc with changes\nGo          go1.26.0\n" +
				"Platform    linux/arm64\n",
		},
		"a build without a stamp": {
			version.Info{GitVersion: "v0.0.0-master+$Format:%H$", GitCommit: "$Format:%H$", BuildDate: "1970-01-01T00:00:00Z",
				GoVersion: "go1.26.0", Platform: "linux/amd64"},
			"Berth       a build without a version\nKubernetes  v1.37\nGo          go1.26.0\nPlatform    linux/amd64\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			require.NoError(t, NewVersion(test.info, "1.37").WriteTable(&out))
			assert.Equal(t, "", test.want, out.String())
		})
	}
}
