package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFigures(t *testing.T) {
	t.Parallel()
	const throughput = `{"labels": {"Metric": "SchedulingThroughput"}, "data": {"Average": 250, "Perc50": 240, "Perc99": 300}}`
	tests := []struct {
		name, items, wantErr string
		want                 run
	}{
		{name: "attempts that bound a pod are told from others", items: throughput + `,
			{"labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds", "result": "scheduled"}, "data": {"Perc50": 3, "Perc99": 9}},
			{"labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds", "result": "unschedulable"}, "data": {"Perc50": 1, "Perc99": 2}},
			{"labels": {"Metric": "SchedulingDuration"}, "data": {"Duration": 12.5}}`,
			want: run{PodsPerSecond: 250, PodsPerSecondMedian: 240, AttemptMedianMillis: 3, AttemptP99Millis: 9, Seconds: 12.5}},
		{name: "a case of less than a second has no throughput", items: `{"labels": {"Metric": "SchedulingDuration"}, "data": {"Duration": 0.5}}`,
			wantErr: "no SchedulingThroughput"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseFigures([]byte(`{"version": "v1", "dataItems": [` + tt.items + `]}`))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTableHasOneRowForEachContenderOfACase(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := writeTable(&out, []run{
		{Case: "misc/A/5Nodes", Contender: stock, Repeat: 1, PodsPerSecond: 100, Threshold: 680},
		{Case: "misc/A/5Nodes", Contender: stock, Repeat: 2, PodsPerSecond: 300, Threshold: 680},
		{Case: "misc/A/5Nodes", Contender: berth, Repeat: 2, PodsPerSecond: 750, Threshold: 680},
		{Case: "misc/B/5Nodes", Contender: berth, Repeat: 1, PodsPerSecond: 7},
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"200 (100–300)", "2.50", "misc/B/5Nodes"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("the table should have %q once:\n%s", want, out.String())
		}
	}
}
