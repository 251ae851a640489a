package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundsAreSummedUpByTheirFault(t *testing.T) {
	t.Parallel()
	rounds := []*round{
		{Disaster: "b", RecoverySeconds: 3, DrainSeconds: 10, Pods: 5, Bound: 4, Evicted: 1},
		{Disaster: "a", RecoverySeconds: 1, DrainSeconds: 1, Pods: 1, Bound: 1},
		{Disaster: "b", RecoverySeconds: 1, DrainSeconds: 20, Pods: 5, Bound: 5, Broken: []string{"x", "y"}},
		{Disaster: "b", RecoverySeconds: 2.004, DrainSeconds: 30, Pods: 5, Bound: 5},
		{Disaster: "b", RecoverySeconds: 9, DrainSeconds: 40},
	}
	want := []line{
		{Disaster: "b", Rounds: 4, Broken: 1, Pods: 15, Bound: 14, Evicted: 1, Recovery: [3]float64{1, 2.5, 9},
			Drain: [3]float64{10, 25, 40}},
		{Disaster: "a", Rounds: 1, Pods: 1, Bound: 1, Recovery: [3]float64{1, 1, 1}, Drain: [3]float64{1, 1, 1}},
	}
	if diff := cmp.Diff(want, sum(rounds)); diff != "" {
		t.Error(diff)
	}
	if got := sum(nil); got != nil {
		t.Errorf("no rounds are summed up as %v", got)
	}
	if got := spread(nil); got != [3]float64{} {
		t.Errorf("the spread of nothing is %v", got)
	}
}

func TestTheReportNamesEveryBrokenPromise(t *testing.T) {
	t.Parallel()
	r := &report{Rounds: []*round{{Disaster: "etcd killed", Seed: 17, Broken: []string{"a pod was bound twice: p"}}}}
	r.Lines = sum(r.Rounds)
	var table, document bytes.Buffer
	if err := r.print(&table, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "etcd killed, seed 17: a pod was bound twice: p") {
		t.Errorf("the table does not say what was broken:\n%s", table.String())
	}
	if err := r.print(&document, true); err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(document.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &again); diff != "" {
		t.Error(diff)
	}
}

func TestARunIsPlanned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		rounds map[string]int
		want   string
	}{
		"the full run kills the scheduler 50 times": {rounds: map[string]int{"scheduler killed": 50, "etcd full": 2}},
		"one fault": {args: []string{"--only", "etcd killed", "--times", "2"},
			rounds: map[string]int{"etcd killed": 2, "etcd full": 0}},
		"a fault that there is not":     {args: []string{"--only", "flood"}, want: "no fault has this in its name"},
		"fewer than no times":           {args: []string{"--times", "-1"}, want: "must be 0 or more"},
		"no pods":                       {args: []string{"--pods-per-second", "0"}, want: "must be 1 to 500"},
		"what is no number":             {args: []string{"--seed", "x"}, want: "invalid value"},
		"more pods than anybody starts": {args: []string{"--pods-per-second", "1e9"}, want: "must be 1 to 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(test.args)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, d := range plan(o) {
				got[d.name]++
			}
			for name, times := range test.rounds {
				if got[name] != times {
					t.Errorf("%s: %d rounds, want %d", name, got[name], times)
				}
			}
		})
	}
}
