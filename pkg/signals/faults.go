package signals

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/common/model"
)

// lastFatal returns the last fatal code in a GPU's history, and when it began; ok reports whether the GPU still has it.
// The exporter repeats a code until the driver is reloaded, so that only changes count: a code from the first
// observation on is of unknown age, and no reason to avoid the GPU. A harmless code after a fatal one does not end the
// fault; a return to 0 does, because it takes a reset.
func lastFatal(history []model.SamplePair, fatal []int32) (code int, at model.Time, ok bool) {
	previous, known := 0, false
	for _, point := range history {
		current, valid := xidOf(point.Value)
		if !valid {
			continue
		}
		switch {
		case current == 0:
			ok = false
		case known && current != previous && slices.Contains(fatal, int32(current)):
			code, at, ok = current, point.Timestamp, true
		}
		previous, known = current, true
	}
	return code, at, ok
}

// endOf returns the last point in time that the history looked at: the end of the one series without labels.
func endOf(history model.Matrix) (model.Time, bool) {
	for _, series := range history {
		if len(series.Metric) == 0 && len(series.Values) > 0 {
			return series.Values[len(series.Values)-1].Timestamp, true
		}
	}
	return 0, false
}

// decodeFaults returns the faults by node, in order of GPU: GPUs that came to have a fatal code, at that time, and
// those whose row remap has failed, as last seen at the time asked, the scheduler's time of the query. It holds at most
// one fault for a GPU and XID, the latest.
func decodeFaults(history model.Matrix, asked time.Time, fatal []int32, from origin) (map[string][]Fault, int) {
	end, ok := endOf(history)
	if !ok {
		return nil, 0
	}
	faults, dropped := map[string][]Fault{}, 0
	for _, series := range history {
		if len(series.Metric) == 0 || len(series.Values) == 0 {
			continue
		}
		node, known := from.node(series.Metric)
		id, ofGPU := gpuOf(series.Metric)
		if !known || !ofGPU {
			dropped++
			continue
		}
		last := series.Values[len(series.Values)-1]
		code, at, fails := 0, last.Timestamp, last.Timestamp == end && last.Value > 0
		if series.Metric[labelReading] == "xid" {
			code, at, fails = lastFatal(series.Values, fatal)
		}
		if fails {
			faults[node] = append(faults[node], Fault{GPUID: id, XID: code, Time: asked.Add(-end.Sub(at))})
		}
	}
	for node, of := range faults {
		slices.SortFunc(of, func(a, b Fault) int {
			return cmp.Or(compareGPUs(a.GPUID, b.GPUID), cmp.Compare(a.XID, b.XID), b.Time.Compare(a.Time))
		})
		faults[node] = slices.CompactFunc(of, func(a, b Fault) bool { return a.GPUID == b.GPUID && a.XID == b.XID })
	}
	return faults, dropped
}
