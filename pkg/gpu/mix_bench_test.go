package gpu

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkArrivalAmongManyClasses counts one arrival more where 100,000 have come, each of a class of its own, and draws
// the mix up again when it is time, as a scheduler does while it holds a lock. It reports the mean of the calls in which
// the mix was drawn up, and the longest of all, which on a busy machine is that of other programs.
func BenchmarkArrivalAmongManyClasses(b *testing.B) {
	const classes = 100_000
	m := NewMix()
	class := func(i int) Class {
		return Class{CPUMilli: int64(1000 + i%50_000), Count: 1 + i/50_000, Milli: WholeMilli, Models: fmt.Sprint("model-", i%7)}
	}
	inUse := m.Distribution()
	began := time.Now()
	for i := range classes {
		m.Observe(class(i), Owner{}, true)
		m.Started(class(i), Owner{}, began)
	}
	var longest, drawing time.Duration
	i, draws := 0, 0
	for b.Loop() {
		at := time.Now()
		c := class(i % classes)
		m.Observe(c, Owner{}, true)
		m.Started(c, Owner{}, at)
		m.Ended(c, Owner{}, began, at)
		due := m.arrivals >= m.redrawAt
		if d := m.Redraw(inUse); d != nil {
			inUse = d
			NewDemand(d, Capacity{"model-0": {GPUs: 800}}, 8)
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
