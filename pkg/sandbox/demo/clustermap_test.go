package demo

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheMapShowsWhoHasWhichGPU(t *testing.T) {
	t.Parallel()
	o := &Outcome{
		Nodes: map[string]*Node{
			"a-10": {Name: "a-10", Model: "A100 <80>", GPUs: 8}, "a-2": {Name: "a-2", Model: "A100 <80>", GPUs: 8},
			"l-0": {Name: "l-0", Model: "L4", GPUs: 2}, "cpu-0": {Name: "cpu-0"},
		},
		Placements: []Placement{
			{Workload: "train", Node: "a-2", GPUs: 2, Milli: 1000},
			{Workload: "train", Node: "a-2", GPUs: 1, Milli: 1000},
			{Workload: "infer", Node: "l-0", GPUs: 1, Milli: 300, Devices: []int{1}},
			{Workload: "infer", Node: "l-0", GPUs: 1, Milli: 400, Devices: []int{1}},
			{Workload: "batch", Node: "a-2"},
			{Workload: "batch", Node: "gone"},
			{Workload: "infer", Node: "l-0", GPUs: 1, Milli: 100, Devices: []int{7}},
		},
	}
	names := o.workloads()
	if diff := cmp.Diff([]string{"batch", "infer", "train"}, names); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	var order []string
	for _, model := range o.models() {
		for _, node := range o.nodesOf(model) {
			order = append(order, node.Name)
		}
	}
	if diff := cmp.Diff([]string{"a-2", "a-10", "l-0", "cpu-0"}, order); diff != "" {
		t.Errorf("nodes in order (-want +got):\n%s", diff)
	}
	gpus, dots := o.fillings(o.Nodes["a-2"], names)
	if diff := cmp.Diff([][]filling{{{2, 1000}}, {{2, 1000}}, {{2, 1000}}, nil, nil, nil, nil, nil}, gpus,
		cmp.AllowUnexported(filling{})); diff != "" {
		t.Errorf("whole GPUs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0}, dots); diff != "" {
		t.Errorf("pods without GPUs (-want +got):\n%s", diff)
	}
	gpus, _ = o.fillings(o.Nodes["l-0"], names)
	if diff := cmp.Diff([][]filling{nil, {{1, 300}, {1, 400}}}, gpus, cmp.AllowUnexported(filling{})); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	for decoder := xml.NewDecoder(strings.NewReader(o.Map())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the map is no XML: %v", err)
		}
	}
}
