package rig

import (
	"os/exec"
	"testing"
	"time"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestOtherCores(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	before := load{start, 100 * time.Second, 25 * time.Second}
	after := func(machine time.Duration) load { return load{start.Add(10 * time.Second), machine, 37 * time.Second} }
	tests := []struct {
		name  string
		after load
		want  float64
	}{
		{"what is left of the machine's time is other work", after(120 * time.Second), 0.8},
		{"a machine that does nothing else", after(112 * time.Second), 0},
		{"rounding does not make it negative", after(111 * time.Second), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "", tt.want, tt.after.otherCoresSince(before))
		})
	}
}

func TestWhatAChildUsesIsOfTheBenchmark(t *testing.T) {
	t.Parallel()
	before, err := readLoad()
	require.NoError(t, err)
	work := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	require.NoError(t, work.Run())
	child := work.ProcessState.UserTime() + work.ProcessState.SystemTime()
	after, err := readLoad()
	require.NoError(t, err)
	if got := after.benchmark - before.benchmark; got < child {
		t.Errorf("the benchmark has used %v, its child alone %v", got, child)
	}
}

func TestTheMachineUsesTime(t *testing.T) {
	t.Parallel()
	before, err := machineCPU()
	require.NoError(t, err)
	work := 0
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // the kernel counts in hundredths of a second
		work++
	}
	if after, err := machineCPU(); err != nil || after <= before {
		t.Errorf("the machine has used %v of CPU time and then %v, error %v; want more for %d rounds", before, after,
			err, work)
	}
}
