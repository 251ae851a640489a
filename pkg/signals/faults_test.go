package signals

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
)

func TestLastFatal(t *testing.T) {
	t.Parallel()
	fatal := []int32{48, 79}
	cases := map[string]struct {
		codes []model.SampleValue
		// want is the position of the change that counts, -1 for none.
		want int
	}{
		"no history":         {nil, -1},
		"healthy throughout": {[]model.SampleValue{0, 0, 0}, -1},
		"a code that stood from the start is old":     {[]model.SampleValue{79, 79, 79}, -1},
		"a change from nothing to a fatal code":       {[]model.SampleValue{0, 79, 79}, 1},
		"a change from one fatal code to another":     {[]model.SampleValue{48, 48, 79}, 2},
		"the last of two changes":                     {[]model.SampleValue{0, 48, 79}, 2},
		"a change to a harmless code":                 {[]model.SampleValue{0, 13, 13}, -1},
		"a harmless code after a fatal one":           {[]model.SampleValue{0, 79, 13}, 1},
		"an old fatal code overwritten by a harmless": {[]model.SampleValue{79, 79, 13}, -1},
		"a reset heals":                               {[]model.SampleValue{0, 79, 0}, -1},
		"a harmless code after a reset":               {[]model.SampleValue{0, 79, 0, 13}, -1},
		"the same code again after a reset":           {[]model.SampleValue{79, 0, 79}, 2},
		"a sentinel in between is not a change":       {[]model.SampleValue{79, 9223372036854775794, 79}, -1},
		"a fatal code as the very first observation":  {[]model.SampleValue{79}, -1},
		"a fraction is no code":                       {[]model.SampleValue{0, 79.5}, -1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var history []model.SamplePair
			for i, code := range c.codes {
				history = append(history, model.SamplePair{Timestamp: model.Time(i), Value: code})
			}
			code, at, ok := lastFatal(history, fatal)
			if ok != (c.want >= 0) {
				t.Fatalf("fault %v (XID %d at %d), want position %d", ok, code, at, c.want)
			}
			if ok && (int(at) != c.want || code != int(c.codes[c.want])) {
				t.Errorf("XID %d at position %d, want XID %v at position %d", code, at, c.codes[c.want], c.want)
			}
		})
	}
}

func FuzzLastFatal(f *testing.F) {
	f.Add([]byte{0, 79, 13}, byte(79))
	f.Fuzz(func(t *testing.T, codes []byte, fatalCode byte) {
		var history []model.SamplePair
		for i, code := range codes {
			history = append(history, model.SamplePair{Timestamp: model.Time(i), Value: model.SampleValue(code)})
		}
		code, at, ok := lastFatal(history, []int32{int32(fatalCode), 0})
		if !ok {
			return
		}
		if code != int(fatalCode) || code == 0 {
			t.Fatalf("XID %d is not fatal", code)
		}
		if at < 1 || codes[at] != fatalCode || codes[at-1] == fatalCode {
			t.Fatalf("no change to %d at position %d of %v", code, at, codes)
		}
		for _, later := range codes[at:] {
			if later == 0 {
				t.Fatalf("%v heals XID %d", codes, code)
			}
		}
	})
}

func TestFaultsOfDoubtfulSeries(t *testing.T) {
	t.Parallel()
	asked := time.Unix(5000, 0)
	series := func(labels model.Metric, values ...model.SampleValue) *model.SampleStream {
		s := &model.SampleStream{Metric: labels}
		for i, v := range values {
			s.Values = append(s.Values, model.SamplePair{Timestamp: model.Time(60_000 * (i + 1)), Value: v})
		}
		return s
	}
	from := newOrigin(hostLabels, []Node{{Name: "a"}})
	got, dropped := decodeFaults(model.Matrix{
		series(model.Metric{}, 0, 0, 0),
		series(model.Metric{"node": "a", "gpu": "2", "berth_reading": "row_remap"}, 1, 1, 1),
		series(model.Metric{"Hostname": "a", "gpu": "2", "berth_reading": "row_remap"}, 1, 1, 1),
		series(model.Metric{"node": "a", "gpu": "1", "berth_reading": "xid"}, 0, 79, 79),
		// The row was remapped in the end; a code that stood from the start; a harmless code.
		series(model.Metric{"node": "a", "gpu": "3", "berth_reading": "row_remap"}, 1, 1),
		series(model.Metric{"node": "a", "gpu": "4", "berth_reading": "xid"}, 79, 79, 79),
		series(model.Metric{"node": "a", "gpu": "5", "berth_reading": "xid"}, 0, 13, 13),
		// Dropped.
		series(model.Metric{"node": "elsewhere", "gpu": "1", "berth_reading": "xid"}, 0, 79, 79),
		series(model.Metric{"node": "a", "berth_reading": "row_remap"}, 1, 1, 1),
	}, asked, []int32{79}, from)
	want := map[string][]Fault{"a": {{GPUID: GPUID{Index: 1}, XID: 79, Time: asked.Add(-time.Minute)},
		{GPUID: GPUID{Index: 2}, Time: asked}}}
	if diff := cmp.Diff(want, got); diff != "" || dropped != 2 {
		t.Errorf("dropped %d, want 2; faults (-want +got):\n%s", dropped, diff)
	}
	if without, _ := decodeFaults(nil, asked, nil, from); without != nil {
		t.Errorf("an answer that does not say what was looked at: %v", without)
	}
	snapshot := &GPUSnapshot{faultWindow: time.Hour, faults: got}
	for after, count := range map[time.Duration]int{59*time.Minute - 1: 2, 59 * time.Minute: 1, time.Hour: 0} {
		if active := snapshot.Faults("a", asked.Add(after)); len(active) != count {
			t.Errorf("faults that count after %s: %v, want %d", after, active, count)
		}
	}
}
