package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/test/harness/assert"
)

func TestTheReportNamesEveryBrokenPromise(t *testing.T) {
	t.Parallel()
	r := &report{Rounds: []round{{Disaster: "etcd killed", Seed: 17, Broken: []string{"a pod was bound twice: p"}},
		{Disaster: "etcd killed", Seed: 18}}}
	var out bytes.Buffer
	if err := r.write(&out); err == nil || !strings.Contains(err.Error(), "in 1 of 2 rounds") {
		t.Errorf("error %v, want one that counts the rounds", err)
	}
	assert.Contains(t, out.String(), "etcd killed, seed 17: a pod was bound twice: p")
	if err := (&report{Rounds: r.Rounds[1:]}).write(&out); err != nil {
		t.Errorf("error %v although every promise was kept", err)
	}
}

func TestARunIsPlanned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		o      options
		rounds map[string]int
	}{
		"the full run kills the scheduler 50 times": {rounds: map[string]int{"scheduler killed": 50, "etcd full": 2}},
		"one fault": {o: options{only: "etcd killed", times: 2},
			rounds: map[string]int{"etcd killed": 2, "etcd full": 0}},
	} {
		got := map[string]int{}
		for _, d := range plan(&test.o) {
			got[d.name]++
		}
		for fault, times := range test.rounds {
			if got[fault] != times {
				t.Errorf("%s: %s: %d rounds, want %d", name, fault, got[fault], times)
			}
		}
	}
	for want, o := range map[string]options{
		"no fault has this in its name": {only: "flood", podsPerSecond: 14},
		"must be 0 or more":             {times: -1, podsPerSecond: 14},
		"must be 1 to 500":              {podsPerSecond: 1e9},
		"must be a minute or more":      {podsPerSecond: 14, soak: time.Second},
	} {
		if err := o.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
