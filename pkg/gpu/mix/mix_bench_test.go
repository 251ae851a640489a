package mix_test

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/mix"
)

// BenchmarkArrivalAmongManyClasses counts one arrival more where 100,000 have come, each of a class of its own, and
// draws the mix up again when it is time, as a scheduler does while it holds a lock. It reports the mean of the calls
// in which the mix was drawn up, and the longest of all, which on a busy machine is that of other programs.
func BenchmarkArrivalAmongManyClasses(b *testing.B) {
	const classes = 100_000
	m := mix.New()
	class := func(i int) mix.Class {
		return mix.Class{CPUMilli: int64(1000 + i%50_000), Count: 1 + i/50_000, Milli: mix.WholeMilli,
			Models: fmt.Sprint("model-", i%7)}
	}
	inUse := m.Distribution()
	began := time.Now()
	for i := range classes {
		m.Observe(class(i), mix.Owner{}, true)
		m.Started(class(i), mix.Owner{}, began)
	}
	var longest, drawing time.Duration
	i, draws := 0, 0
	for b.Loop() {
		at := time.Now()
		c := class(i % classes)
		m.Observe(c, mix.Owner{}, true)
		m.Started(c, mix.Owner{}, at)
		m.Ended(c, mix.Owner{}, began, at)
		due := m.Due()
		if d := m.Redraw(inUse); d != nil {
			inUse = d
			gpu.NewDemand(d, mix.Capacity{"model-0": {GPUs: 800}}, 8)
		}
		took := time.Since(at)
		if longest = max(longest, took); due {
			drawing += took
			draws++
		}
		i++
	}
	b.ReportMetric(float64(drawing.Microseconds())/1000/float64(max(1, draws)), "ms/draw")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms/longest")
}
