package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/hack/bench/live"
)

var twoContenders = []live.Contender{{Name: "stock"}, {Name: "berth"}}

func TestTrials(t *testing.T) {
	t.Parallel()
	trials, err := trialsOf([]int{500, 50}, []podsAt{{50, 20}}, workloads[:1], twoContenders, 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tr := range trials {
		got = append(got, fmt.Sprintf("%d pods: %s", tr.pods, tr))
	}
	want := []string{
		"1000 pods: 500 nodes, identical, stock, repeat 1", "1000 pods: 500 nodes, identical, berth, repeat 1",
		"1000 pods: 500 nodes, identical, berth, repeat 2", "1000 pods: 500 nodes, identical, stock, repeat 2",
		"20 pods: 50 nodes, identical, stock, repeat 1", "20 pods: 50 nodes, identical, berth, repeat 1",
		"20 pods: 50 nodes, identical, berth, repeat 2", "20 pods: 50 nodes, identical, stock, repeat 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	trials := func(size int, asked podsAt) error {
		_, err := trialsOf([]int{size}, []podsAt{asked}, workloads[:1], twoContenders, 1)
		return err
	}
	nodes := func(text string) error { _, err := parseNodes(text); return err }
	pods := func(text string) error { _, err := parsePods(text); return err }
	for name, tt := range map[string]struct {
		err     error
		wantErr string
	}{
		"a GOGC in words":                      {addEnv("GOGC", gogcForm, "want a number")("much"), "want a number"},
		"a GOGC of nothing":                    {addEnv("GOGC", gogcForm, "want a number")("0"), "want a number"},
		"a limit in units that Go lacks":       {addEnv("GOMEMLIMIT", memlimitForm, "want a size")("2GB"), "want a size"},
		"a cluster that is too small":          {nodes("49"), "want 50 to 20,000"},
		"a size that is no number":             {nodes("many"), "want 50 to 20,000"},
		"pods without a size":                  {pods("700"), "want NODES=PODS"},
		"pods for a size that is not measured": {trials(500, podsAt{700, 10}), "--pods: 700 is not among"},
		"more pods than fit":                   {trials(100, podsAt{100, 721}), "want 2 to 720"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.wantErr) {
			t.Errorf("%s: got error %v, want one with %q", name, tt.err, tt.wantErr)
		}
	}
	if !gogcForm.MatchString("400") || !gogcForm.MatchString("off") || !memlimitForm.MatchString("2GiB") {
		t.Error("GOGC 400 and off, and GOMEMLIMIT 2GiB should be allowed")
	}
}
