package scripts_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// served are the names of objects, by where an API server has them.
var served = map[string]string{
	"/api/v1/namespaces":                                                "team",
	"/api/v1/namespaces/default/pods":                                   "trainer-0",
	"/api/v1/namespaces/team/pods":                                      "other-0",
	"/apis/batch/v1/namespaces/default/jobs":                            "nightly",
	"/apis/apps/v1/namespaces/default/deployments":                      "serving",
	"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups":   "train",
	"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/elsewhere/podgroups": "none",
}

func TestNamesOfObjectsAreCompleted(t *testing.T) {
	t.Parallel()
	binary, err := sandbox.FindBinary()
	require.NoError(t, err)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, known := served[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "items": [{"metadata": {"name": "` + name + `"}}]}`))
	}))
	t.Cleanup(api.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"users: [{name: u}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: \""+api.URL+"\"}}]\n"), 0o600))
	for typed, want := range map[string]string{
		"explain pod |":                "trainer-0",
		"explain pod -n team |":        "other-0",
		"explain pod/|":                "pod/trainer-0",
		"explain job |":                "nightly",
		"explain deploy/|":             "deploy/serving",
		"explain podgroup |":           "train",
		"explain statefulset |":        "", // which this server does not have
		"explain node/|":               "",
		"explain pod trainer-0 |":      "",
		"advise --for podgroup/|":      "podgroup/train",
		"advise --for |":               "pod/ podgroup/",
		"explain pod trainer-0 -n |":   "team",
		"advise -n team --for pod/oth": "pod/other-0",
	} {
		t.Run(typed, func(t *testing.T) {
			t.Parallel()
			words := append([]string{"__completeNoDesc"},
				strings.Fields(strings.ReplaceAll(strings.ReplaceAll(typed, " |", " ''"), "|", ""))...)
			if last := &words[len(words)-1]; *last == "''" {
				*last = ""
			}
			cmd := exec.CommandContext(t.Context(), binary, words...)
			cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
			out, err := cmd.Output()
			require.NoError(t, err)
			got, _, _ := strings.Cut(string(out), ":") // what follows is for the shell
			assert.Equal(t, "completions", want, strings.Join(strings.Fields(got), " "))
		})
	}
}
