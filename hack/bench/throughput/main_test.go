package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrials(t *testing.T) {
	t.Parallel()
	o := options{
		nodes: []int{500, 50}, pods: map[string]int{"50": 20}, workloads: []string{"identical"},
		contenders: []string{"stock", "berth"}, repeats: 2,
	}
	trials, err := o.trials()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tr := range trials {
		got = append(got, fmt.Sprintf("%d nodes, %d pods, %s, %s, repeat %d",
			tr.nodes, tr.pods, tr.workload.name, tr.contender.name, tr.repeat))
	}
	want := []string{
		"500 nodes, 1000 pods, identical, stock, repeat 1", "500 nodes, 1000 pods, identical, berth, repeat 1",
		"500 nodes, 1000 pods, identical, berth, repeat 2", "500 nodes, 1000 pods, identical, stock, repeat 2",
		"50 nodes, 20 pods, identical, stock, repeat 1", "50 nodes, 20 pods, identical, berth, repeat 1",
		"50 nodes, 20 pods, identical, berth, repeat 2", "50 nodes, 20 pods, identical, stock, repeat 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, wantErr string
		change        func(*options)
	}{
		{"no repeats", "--repeats: 0", func(o *options) { o.repeats = 0 }},
		{"a GOGC in words", `--gogc: "much"`, func(o *options) { o.gogc = "much" }},
		{"a GOGC of nothing", `--gogc: "0"`, func(o *options) { o.gogc = "0" }},
		{"a memory limit in units that Go does not know", `--memlimit: "2GB"`, func(o *options) { o.memlimit = "2GB" }},
		{"a cluster that is too small", "--nodes: 49", func(o *options) { o.nodes = []int{49} }},
		{"pods for a size that is not measured", "--pods: 700 is not among", func(o *options) {
			o.pods = map[string]int{"700": 10}
		}},
		{"more pods than fit", "want 2 to 720", func(o *options) {
			o.nodes, o.pods = []int{100}, map[string]int{"100": 721}
		}},
		{"an unknown workload", `"web" is unknown; want some of identical, distinct, half, mix`, func(o *options) {
			o.workloads = []string{"web"}
		}},
		{"an unknown contender", `"fast" is unknown`, func(o *options) { o.contenders = []string{"fast"} }},
		{"no contender", "--contenders: name one", func(o *options) { o.contenders = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options{
				nodes: []int{500}, workloads: []string{"identical"}, contenders: []string{"stock"},
				repeats: 1, gogc: "off", memlimit: "2GiB",
			}
			if _, err := o.trials(); err != nil {
				t.Fatalf("what is to be changed is refused already: %v", err)
			}
			tt.change(&o)
			if _, err := o.trials(); err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got error %v, want one with %q", err, tt.wantErr)
			}
		})
	}
}

func TestSchedulerEnv(t *testing.T) {
	t.Parallel()
	o := options{gogc: "200", memlimit: "2GiB"}
	if diff := cmp.Diff([]string{"GOGC=200", "GOMEMLIMIT=2GiB"}, o.schedulerEnv()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if env := (&options{}).schedulerEnv(); env != nil {
		t.Errorf("environment %v without flags, want none", env)
	}
}
