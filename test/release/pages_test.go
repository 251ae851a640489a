package release_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// outcomes are claims of pages that their outputs do not show, checked before the page cleans up.
var outcomes = map[string]func(t *testing.T, r *reader){
	"03-gpu-types": func(t *testing.T, r *reader) {
		if nodes := r.bound(t, "app=llama-70b-h100", corev1.LabelHostname); len(nodes) != 1 {
			t.Errorf("the replicas are on the nodes %v, want one node", nodes)
		}
	},
	"09-training-gang": func(t *testing.T, r *reader) {
		if racks := r.bound(t, "job-name=gang-training", "topology.kubernetes.io/rack"); len(racks) != 1 {
			t.Errorf("the gang is in the racks %v, want one rack", racks)
		}
	},
	"11-shared-gpus": func(t *testing.T, r *reader) {
		if nodes := r.bound(t, "app=inference-shared", corev1.LabelHostname); len(nodes) != 1 {
			t.Errorf("the shares are on the nodes %v, want one node", nodes)
		}
	},
	"14-nvlink-and-rack": func(t *testing.T, r *reader) {
		if racks := r.bound(t, "job-name=one-rack", "topology.kubernetes.io/rack"); len(racks) != 1 {
			t.Errorf("the gang is in the racks %v, want one rack", racks)
		}
	},
	"15-side-by-side": func(t *testing.T, r *reader) {
		stock, ours := r.bound(t, "app=side-by-side-default", corev1.LabelHostname), r.bound(t, "app=side-by-side-berth",
			corev1.LabelHostname)
		if len(ours) >= len(stock) {
			t.Errorf("Berth uses the nodes %v, the default scheduler %v, want fewer", ours, stock)
		}
	},
}

var numbered = regexp.MustCompile(`^\d\d-`)

// TestThePagesShowWhatHappens follows pages one after the other, because each assumes an empty cluster.
//
//nolint:tparallel // see above
func TestThePagesShowWhatHappens(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"python3", "curl"} { // of the page on scorers
		box.Installed(t, program, program)
	}
	folder := filepath.Join(manifests(t), "examples")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	r := newReader(t)
	t.Run("getting started", func(t *testing.T) { worksWordByWord(t, r.box) })
	var pages int
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || !numbered.MatchString(name) {
			continue
		}
		pages++
		t.Run(name, func(t *testing.T) {
			steps, err := readPage(filepath.Join(folder, name))
			require.NoError(t, err)
			r.follow(t, steps, func() {
				if check := outcomes[name]; check != nil {
					check(t, r)
				}
			})
		})
	}
	for name := range outcomes {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Errorf("an outcome of no example: %v", err)
		}
	}
	if pages < 24 {
		t.Errorf("found %d pages, want 24 or more", pages)
	}
}
