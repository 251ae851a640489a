package examples_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		stock, ours := r.bound(t, "app=side-by-side-default", corev1.LabelHostname), r.bound(t, "app=side-by-side-berth", corev1.LabelHostname)
		if len(ours) >= len(stock) {
			t.Errorf("Berth uses the nodes %v, the default scheduler %v, want fewer", ours, stock)
		}
	},
	"20-near-cache": func(t *testing.T, r *reader) {
		if nodes := r.bound(t, "app in (cache,reader)", corev1.LabelHostname); len(nodes) != 1 {
			t.Errorf("cache and readers are on the nodes %v, want one node", nodes)
		}
	},
}

// needs are programs that pages use besides berth, kubectl and a shell.
var needs = map[string][]string{"19-external-scorer": {"python3", "curl"}}

var numbered = regexp.MustCompile(`^\d\d-`)

func TestThePagesOfTheExamplesShowWhatHappens(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	var pages int
	// One after the other, because each page assumes an empty cluster.
	for _, entry := range entries {
		folder := entry.Name()
		if !entry.IsDir() || !numbered.MatchString(folder) {
			continue
		}
		pages++
		t.Run(folder, func(t *testing.T) {
			for _, program := range needs[folder] {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("NOTICE: %s is not in PATH, so the page is not tested", program)
				}
			}
			steps, err := readPage(folder)
			if err != nil {
				t.Fatal(err)
			}
			r.follow(t, steps, func() {
				if check := outcomes[folder]; check != nil {
					check(t, r)
				}
			})
		})
	}
	for folder := range outcomes {
		if _, err := os.Stat(folder); err != nil {
			t.Errorf("an outcome of no example: %v", err)
		}
	}
	if pages < 24 {
		t.Errorf("found %d pages, want 24 or more", pages)
	}
}

func TestTheIndexListsEveryExample(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && !strings.Contains(string(index), "]("+entry.Name()+"/README.md)") {
			t.Errorf("README.md has no link to %s", entry.Name())
		}
	}
}
