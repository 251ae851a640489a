package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/hack/bench/live"
)

func TestTrials(t *testing.T) {
	t.Parallel()
	var got []string
	for _, tr := range trialsOf([]int{500, 50}, 700, workloads[:1], []live.Contender{{Name: "stock"}, {Name: "berth"}}, 2) {
		got = append(got, fmt.Sprintf("%d pods: %s", tr.pods, tr))
	}
	want := []string{
		"700 pods: 500 nodes, identical, stock, repeat 1", "700 pods: 500 nodes, identical, berth, repeat 1",
		"700 pods: 500 nodes, identical, berth, repeat 2", "700 pods: 500 nodes, identical, stock, repeat 2",
		"100 pods: 50 nodes, identical, stock, repeat 1", "100 pods: 50 nodes, identical, berth, repeat 1",
		"100 pods: 50 nodes, identical, berth, repeat 2", "100 pods: 50 nodes, identical, stock, repeat 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestSizesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"49", "20001", "many"} {
		if _, err := parseNodes(text); err == nil || !strings.Contains(err.Error(), "want 50 to 20,000") {
			t.Errorf("%s nodes: got error %v, want one with the bounds", text, err)
		}
	}
}
