package signals

import (
	"testing"

	"github.com/prometheus/common/model"
)

func TestLastFatal(t *testing.T) {
	t.Parallel()
	fatal := map[int]bool{48: true, 79: true}
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
		code, at, ok := lastFatal(history, map[int]bool{int(fatalCode): true, 0: true})
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
