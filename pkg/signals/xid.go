package signals

import (
	"time"

	"github.com/prometheus/common/model"
)

// lastFatal returns the last fatal code that a GPU came to have in its history, and when. The exporter repeats a code
// until the driver is reloaded, so what counts is the change: a code that stands from the first observation on is old,
// or of unknown age after a gap in which it did not change, and no reason to keep work away. A harmless code after a
// fatal one does not heal the GPU; a return to 0 does, because it takes a reset.
func lastFatal(history []model.SamplePair, fatal map[int]bool) (code int, at model.Time, ok bool) {
	previous, known := 0, false
	for _, point := range history {
		current, valid := xidOf(point.Value)
		if !valid {
			continue
		}
		switch {
		case current == 0:
			ok = false
		case known && current != previous && fatal[current]:
			code, at, ok = current, point.Timestamp, true
		}
		previous, known = current, true
	}
	if !ok {
		return 0, 0, false
	}
	return code, at, true
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

// xidFaults returns by node the GPUs that came to have a fatal code; asked is the scheduler's time of the query.
func xidFaults(history model.Matrix, asked time.Time, fatal map[int]bool, from origin) (faultsByNode, drops) {
	dropped := drops{}
	end, ok := endOf(history)
	if !ok {
		return nil, dropped
	}
	faults := faultsByNode{}
	for _, series := range history {
		if len(series.Metric) == 0 {
			continue
		}
		node, id, reason := from.locate(series.Metric)
		if reason != "" {
			dropped[reason]++
			continue
		}
		if code, at, ok := lastFatal(series.Values, fatal); ok {
			faults.add(node, Fault{GPUID: id, XID: code, Time: asked.Add(-end.Sub(at))})
		}
	}
	return faults, dropped
}
