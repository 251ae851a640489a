package tools_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/pkg/signals"
)

// track writes samples of one series, one every 30 s, from an age to another.
type track struct {
	series   string
	from, to time.Duration
	value    string
}

func (tr track) lines(now time.Time) []string {
	var lines []string
	for age := tr.from; age >= tr.to; age -= 30 * time.Second {
		lines = append(lines, fmt.Sprintf("%s %s %.3f", tr.series, tr.value, float64(now.Add(-age).UnixMilli())/1000))
	}
	return lines
}

func TestFaultsAreReadFromTheHistoryInARealPrometheus(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	xid := func(node string) string {
		return fmt.Sprintf(`DCGM_FI_DEV_XID_ERRORS{node=%q,gpu="3",UUID="GPU-3"}`, node)
	}
	cases := []struct {
		node   string
		tracks []track
		want   []signals.Fault
		// age of the fault.
		age time.Duration
	}{
		{node: "old-code-is-no-fault", tracks: []track{{xid("old-code-is-no-fault"), 120 * m, 0, "48"}}},
		{node: "new-code-is-a-fault", tracks: []track{
			{xid("new-code-is-a-fault"), 120 * m, 10 * m, "0"}, {xid("new-code-is-a-fault"), 9*m + 30*time.Second, 0, "79"}},
			want: []signals.Fault{{XID: 79}}, age: 9 * m},
		{node: "unchanged-across-a-gap-is-no-fault", tracks: []track{
			{xid("unchanged-across-a-gap-is-no-fault"), 120 * m, 40 * m, "48"}, {xid("unchanged-across-a-gap-is-no-fault"),
				20 * m, 0, "48"}}},
		{node: "harmless-code-does-not-heal", tracks: []track{
			{xid("harmless-code-does-not-heal"), 120 * m, 21 * m, "0"}, {xid("harmless-code-does-not-heal"), 20 * m, 16 * m,
				"79"},
			{xid("harmless-code-does-not-heal"), 15 * m, 0, "13"}},
			want: []signals.Fault{{XID: 79}}, age: 20 * m},
		{node: "reset-heals", tracks: []track{
			{xid("reset-heals"), 120 * m, 31 * m, "0"}, {xid("reset-heals"), 30 * m, 21 * m, "79"},
			{xid("reset-heals"), 20 * m, 0, "0"}}},
		{node: "harmless-code-is-no-fault", tracks: []track{
			{xid("harmless-code-is-no-fault"), 120 * m, 6 * m, "0"}, {xid("harmless-code-is-no-fault"), 5 * m, 0, "31"}}},
		{node: "same-code-after-a-reset-is-a-fault", tracks: []track{
			{xid("same-code-after-a-reset-is-a-fault"), 120 * m, 41 * m, "79"}, {xid("same-code-after-a-reset-is-a-fault"),
				40 * m, 31 * m, "0"},
			{xid("same-code-after-a-reset-is-a-fault"), 30 * m, 0, "79"}},
			want: []signals.Fault{{XID: 79}}, age: 30 * m},
		{node: "sentinel-is-no-fault", tracks: []track{
			{xid("sentinel-is-no-fault"), 120 * m, 11 * m, "0"}, {xid("sentinel-is-no-fault"), 10 * m, 0,
				"9223372036854775794"}}},
		{node: "code-in-a-label-too", tracks: []track{
			{`DCGM_FI_DEV_XID_ERRORS{node="code-in-a-label-too",gpu="3",UUID="GPU-3",err_code="0"}`, 120 * m, 13 * m, "0"},
			{`DCGM_FI_DEV_XID_ERRORS{node="code-in-a-label-too",gpu="3",UUID="GPU-3",err_code="95"}`, 10 * m, 0, "95"}},
			want: []signals.Fault{{XID: 95}}, age: 10 * m},
		{node: "failed-row-remap-is-a-fault", tracks: []track{
			{`DCGM_FI_DEV_ROW_REMAP_FAILURE{node="failed-row-remap-is-a-fault",gpu="3",UUID="GPU-3"}`, 120 * m, 0, "1"}},
			want: []signals.Fault{{}}},
		{node: "row-remap-in-order-is-no-fault", tracks: []track{
			{`DCGM_FI_DEV_ROW_REMAP_FAILURE{node="row-remap-in-order-is-no-fault",gpu="3",UUID="GPU-3"}`, 120 * m, 0, "0"}}},
	}
	now := time.Now()
	var lines []string
	var nodes []signals.Node
	for _, c := range cases {
		nodes = append(nodes, signals.Node{Name: c.node})
		for _, tr := range c.tracks {
			lines = append(lines, tr.lines(now)...)
		}
	}
	server := startPrometheus(t, "", backfill(t, lines), "")
	start := time.Now()
	r := startGPUs(t, gpuArgs(server.url), nodes...)
	reads(t, func() string {
		for _, node := range []string{"new-code-is-a-fault", "failed-row-remap-is-a-fault"} {
			if r.Snapshot().Faults(node, now) == nil {
				return "no fault of node " + node
			}
		}
		return ""
	})
	took := time.Since(start)
	for _, c := range cases {
		for i := range c.want {
			c.want[i].GPUID = signals.GPUID{Index: 3, UUID: "GPU-3"}
		}
		got := r.Snapshot().Faults(c.node, now)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(signals.Fault{}, "Time")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.node, diff)
			continue
		}
		// The history is looked at once a minute, at whole minutes.
		for _, fault := range got {
			if late := fault.Time.Sub(now.Add(-c.age)); late < -took-time.Second || late > 2*time.Minute {
				t.Errorf("%s: fault of %s ago, want %s", c.node, now.Sub(fault.Time), c.age)
			}
		}
	}
	if later := r.Snapshot().Faults("new-code-is-a-fault", now.Add(time.Hour)); later != nil {
		t.Errorf("an hour later the fault still counts: %v", later)
	}
}

func TestSamplesCountUntilTheyAreOldInARealPrometheus(t *testing.T) {
	t.Parallel()
	now := time.Now()
	util := func(node string) string {
		return fmt.Sprintf(`DCGM_FI_DEV_GPU_UTIL{Hostname=%q,gpu="0",UUID="GPU-0"}`, node)
	}
	nodes := []signals.Node{{Name: "gone"}}
	lines := track{util("gone"), 10*time.Minute + 200*time.Second, 200 * time.Second, "30"}.lines(now)
	// Four of five nodes suffice.
	for i, age := range []time.Duration{10 * time.Second, 20 * time.Second, time.Minute, 2 * time.Minute} {
		name := fmt.Sprintf("measured-%d", i)
		nodes = append(nodes, signals.Node{Name: name})
		lines = append(lines, track{util(name), 10*time.Minute + age, age, "10"}.lines(now)...)
	}
	server := startPrometheus(t, "", backfill(t, lines), "")
	r := startGPUs(t, gpuArgs(server.url), nodes...)
	reads(t, func() string {
		for _, node := range nodes[1:] {
			if _, ok := r.Snapshot().Use(node.Name, now); !ok {
				return "no use of node " + node.Name
			}
		}
		return ""
	})
	if use, ok := r.Snapshot().Use("gone", now); ok {
		t.Errorf("a sample of 200 s ago counts: %v", use)
	}
	// Prometheus keeps milliseconds, so the sample may be a part of one younger than it was made.
	if use, ok := r.Snapshot().Use("measured-3", now.Add(time.Minute+time.Second)); ok {
		t.Errorf("a sample of 181 s ago counts: %v", use)
	}
}
