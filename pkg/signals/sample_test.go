package signals

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/cost/price"
)

// sentinels are what DCGM writes for "blank", "not found", "not supported" and "no permission", as 64-bit integers,
// 32-bit integers and floating-point numbers.
var sentinels = []float64{
	9223372036854775792, 9223372036854775793, 9223372036854775794, 9223372036854775795,
	2147483632, 2147483633, 2147483634, 2147483635, 140737488355328, 140737488355329, 140737488355330, 140737488355331,
	math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64,
}

func TestSentinelsAreNoReadings(t *testing.T) {
	t.Parallel()
	for _, v := range sentinels {
		value := model.SampleValue(v)
		for name, largest := range map[string]float64{"engine": 1, "util": 100, "memory": maxMemoryMiB} {
			if inBounds(value, largest) {
				t.Errorf("%v passes for a reading of %s", v, name)
			}
		}
		if code, ok := xidOf(value); ok {
			t.Errorf("%v passes for XID %d", v, code)
		}
		if amount, ok := priceOf(value); ok {
			t.Errorf("%v passes for a price of %s", v, amount)
		}
	}
}

func TestSampleValues(t *testing.T) {
	t.Parallel()
	t.Run("thousandths are rounded to the nearest", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			value model.SampleValue
			full  float64
			want  int
		}{{0, 1, 0}, {0.0004, 1, 0}, {0.0006, 1, 1}, {0.25, 1, 250}, {1, 1, 1000}, {0, 100, 0}, {33, 100, 330},
			{100, 100, 1000}} {
			if got := milliOf(c.value, c.full); got != c.want {
				t.Errorf("%v of %v: %d milli, want %d", c.value, c.full, got, c.want)
			}
		}
	})
	t.Run("XID codes are whole numbers up to 9999", func(t *testing.T) {
		t.Parallel()
		for value, want := range map[model.SampleValue]bool{0: true, 79: true, 9999: true, 10000: false, 79.5: false} {
			code, ok := xidOf(value)
			if ok != want || (ok && code != int(value)) {
				t.Errorf("%v: code %d, valid %v, want valid %v", value, code, ok, want)
			}
		}
	})
	t.Run("prices are rounded to the micro-dollar and nothing is no price", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			value model.SampleValue
			want  price.MicroDollars
			ok    bool
		}{
			{3.06, 3_060_000, true}, {0.1, 100_000, true}, {0.0000006, 1, true}, {1_000_000, price.MaxPrice, true},
			{0, 0, false}, {model.SampleValue(math.Copysign(0, -1)), 0, false}, {0.0000001, 0, false}, {1_000_001, 0, false},
		} {
			got, ok := priceOf(c.value)
			if ok != c.ok || got != c.want {
				t.Errorf("%v: %s, known %v, want %s, known %v", c.value, got, ok, c.want, c.ok)
			}
		}
	})
	t.Run("the age of a sample is by the server's clock and never negative", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			taken model.SampleValue
			want  time.Duration
			ok    bool
		}{
			{1000, 500 * time.Millisecond, true}, {940.5, time.Minute, true}, {2000, 0, true},
			{model.SampleValue(math.NaN()), 0, false}, {model.SampleValue(math.Inf(-1)), 0, false}, {-1e300, 0, false},
			{1e300, 0, false},
		} {
			got, ok := ageOf(1_000_500, c.taken)
			if got != c.want || ok != c.ok {
				t.Errorf("taken at %v: age %s, known %v, want %s, known %v", c.taken, got, ok, c.want, c.ok)
			}
		}
	})
	t.Run("a GPU has an index, a UUID or both", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			index, uuid model.LabelValue
			want        GPUID
			ok          bool
		}{
			{"3", "GPU-3", GPUID{3, "GPU-3"}, true}, {"", "GPU-3", GPUID{-1, "GPU-3"}, true}, {"0", "", GPUID{0, ""}, true},
			{"-1", "GPU-3", GPUID{-1, "GPU-3"}, true}, {"99999999999999999999", "", GPUID{-1, ""}, false},
			{"1024", "", GPUID{-1, ""}, false}, {"nvidia0", "", GPUID{-1, ""}, false}, {"", "", GPUID{-1, ""}, false},
		} {
			got, ok := gpuOf(model.Metric{"gpu": c.index, "UUID": c.uuid})
			if got != c.want || ok != c.ok {
				t.Errorf("gpu=%q UUID=%q: %v, ok %v, want %v, ok %v", c.index, c.uuid, got, ok, c.want, c.ok)
			}
		}
	})
}

// FuzzSampleValues holds every parser of a value to the range that it promises.
func FuzzSampleValues(f *testing.F) {
	for _, v := range append(sentinels, 0, 0.5, 1, 79, 100, 3.06, 1e6) {
		f.Add(v, v, "0", "GPU-0")
	}
	f.Fuzz(func(t *testing.T, v, at float64, index, uuid string) {
		value := model.SampleValue(v)
		for _, full := range []float64{1, 100} {
			if inBounds(value, full) {
				if milli := milliOf(value, full); milli < 0 || milli > 1000 {
					t.Errorf("%v of %v: %d milli", v, full, milli)
				}
			}
		}
		if code, ok := xidOf(value); ok && (code < 0 || code > largestXID || float64(code) != v) {
			t.Errorf("%v: XID %d", v, code)
		}
		if amount, ok := priceOf(value); ok && (amount <= 0 || amount > price.MaxPrice ||
			math.Abs(amount.Dollars()-v) > 1e-6) {
			t.Errorf("%v: price %s", v, amount)
		}
		if age, ok := ageOf(model.Time(int64(at)), value); ok && age < 0 {
			t.Errorf("asked at %v, taken at %v: age %s", at, v, age)
		}
		id, ok := gpuOf(model.Metric{"gpu": model.LabelValue(index), "UUID": model.LabelValue(uuid)})
		if id.Index < -1 || id.Index > maxGPUIndex || ok != (id.Index >= 0 || id.UUID != "") {
			t.Errorf("gpu=%q UUID=%q: %v, ok %v", index, uuid, id, ok)
		}
	})
}

// FuzzOrigin looks up hosts that are near the names of nodes: whatever it finds is one of the nodes.
func FuzzOrigin(f *testing.F) {
	f.Add("gpu-1.example.com", "gpu-1", "gpu-1")
	f.Add("a", "b", "")
	f.Fuzz(func(t *testing.T, name, hostname, host string) {
		other := Node{Name: "other.example.com", Hostname: hostname}
		from := newOrigin([]string{"node"}, []Node{{Name: name, Hostname: hostname}, other})
		node, ok := from.node(model.Metric{"node": model.LabelValue(host)})
		if ok && node != name && node != other.Name {
			t.Errorf("host %q: node %q", host, node)
		}
		if host != "" && host == name && node != name {
			t.Errorf("host %q: node %q, want the node of that name", host, node)
		}
		if short, _, _ := strings.Cut(name, "."); host == hostname && host != name && host != short && host != "other" &&
			host != other.Name && node != "" {
			t.Errorf("host %s, the hostname of two nodes: node %s", strconv.Quote(host), strconv.Quote(node))
		}
	})
}
