package gpuaware

import (
	"errors"
	"testing"
	"time"
)

func TestNoDevicesAreGivenAfterAStandstill(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	for _, tc := range []struct {
		name    string
		beats   []time.Duration
		at      time.Duration
		elected bool
		want    error
	}{
		{"a process that has just begun", nil, 0, true, nil},
		{"one that runs", []time.Duration{0, time.Second}, 2 * time.Second, true, nil},
		{"one that was slow", []time.Duration{0, standstillLimit}, standstillLimit + time.Second, true, nil},
		{"one that goes on, before it has noted that", []time.Duration{0}, standstillLimit + 1, true, errStoodStill},
		{"one that has noted that it goes on", []time.Duration{0, time.Minute}, time.Minute + standstillGrace - 1, true, errStoodStill},
		{"one that has gone on for a while", []time.Duration{0, time.Minute, time.Minute + standstillGrace}, time.Minute + standstillGrace, true, nil},
		{"one that is the only one", []time.Duration{0, time.Minute}, time.Minute, false, nil},
		{"a clock that was put back", []time.Duration{0, time.Minute, -time.Hour}, -time.Hour, true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := standstill{elected: func() bool { return tc.elected }}
			for _, beat := range tc.beats {
				s.beat(start.Add(beat))
			}
			if err := s.check(start.Add(tc.at)); !errors.Is(err, tc.want) {
				t.Errorf("check: %v, want %v", err, tc.want)
			}
		})
	}
}
