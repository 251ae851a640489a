package showback

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFromSamples(t *testing.T) {
	t.Parallel()
	used := func(v int64) *int64 { return &v }
	samples := []Sample{
		{At: hours(23), Key: "a", MilliGPU: 2000, UsedMilliGPU: 500, Measured: true, Hourly: 4_000_000},
		{At: hours(23), Key: "b", MilliGPU: 1000},
		// This step is cut by midnight and by the end.
		{At: hours(23.5), Key: "a", MilliGPU: 4000, UsedMilliGPU: 4000, Measured: true, Hourly: 8_000_000},
		{At: hours(22), Key: "before", MilliGPU: 1000},
		{At: hours(25), Key: "after", MilliGPU: 1000},
	}
	s, err := FromSamples(hours(23), hours(24.25), time.Hour, samples, []Capacity{{hours(23), 8000}, {hours(23.5), 2000}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{
		{Key: "a", MilliGPUSeconds: 2*gpuHour + 4*gpuHour*3/4, MicroDollars: 4_000_000 + 6_000_000,
			UsedMilliGPUSeconds: used(gpuHour/2 + 3*gpuHour)},
		{Key: "b", MilliGPUSeconds: gpuHour},
	}
	if diff := cmp.Diff(want, s.Lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if s.Idle.MilliGPUSeconds != 5*gpuHour || !s.Measured || len(s.Days) != 2 || s.Total.MilliGPUSeconds != 11*gpuHour {
		t.Errorf("idle %+v of %+v, measured %t, %d days", s.Idle, s.Total, s.Measured, len(s.Days))
	}
	if nothing, err := FromSamples(hours(0), hours(1), time.Hour, nil, nil); err != nil || len(nothing.Lines) != 0 ||
		nothing.Measured {
		t.Errorf("without samples: %+v, %v", nothing, err)
	}
	if s, err := FromSamples(hours(1), hours(1), time.Hour, nil, nil); err == nil {
		t.Errorf("no time: %+v, want an error", s)
	}
}
