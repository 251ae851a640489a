package rig

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/manifests"
	"berth.dev/berth/test/harness/require"
)

func TestInstalledGatesAreThoseOfTheManifests(t *testing.T) {
	t.Parallel()
	deployment, err := manifests.Files.ReadFile("base/deployment.yaml")
	require.NoError(t, err)
	found := regexp.MustCompile(`--feature-gates=(\S+)`).FindSubmatch(deployment)
	if found == nil {
		t.Fatal("the deployment has no feature gates")
	}
	if diff := cmp.Diff(InstalledGates, strings.Split(string(found[1]), ",")); diff != "" {
		t.Errorf("feature gates (-measured +installed):\n%s", diff)
	}
}
