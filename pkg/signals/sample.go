package signals

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/cost/price"
)

const (
	// maxMemoryMiB is 16 TiB, beyond any GPU and far below the sentinels of DCGM, which begin at 2^63 − 16.
	maxMemoryMiB = 1 << 24
	largestXID   = 9999
	// maxGPUIndex bounds the index on one host; larger ones are noise.
	maxGPUIndex = 1023
)

// GPUID tells the GPUs of one node apart.
type GPUID struct {
	// Index is the device index on the node, or -1 where the series does not tell.
	Index int
	// UUID is the device's own name, "GPU-…", or "" where the series does not tell.
	UUID string
}

// gpuOf returns the GPU that a series is about; ok is false if neither its index nor its UUID is there.
func gpuOf(metric model.Metric) (id GPUID, ok bool) {
	id = GPUID{Index: -1, UUID: string(metric["UUID"])}
	if index, err := strconv.Atoi(string(metric["gpu"])); err == nil && index >= 0 && index <= maxGPUIndex {
		id.Index = index
	}
	return id, id.Index >= 0 || id.UUID != ""
}

func compareGPUs(a, b GPUID) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.UUID, b.UUID))
}

// firstLabel returns the value of the first of the labels that the series has, "" if it has none.
func firstLabel(metric model.Metric, labels []string) string {
	for _, label := range labels {
		if value := metric[model.LabelName(label)]; value != "" {
			return string(value)
		}
	}
	return ""
}

// inBounds says whether a value is a reading from 0 to largest: not NaN, not negative, not one of the sentinels that
// stand for "no reading".
func inBounds(value model.SampleValue, largest float64) bool {
	return value >= 0 && float64(value) <= largest
}

// milliOf turns a reading within bounds into thousandths of full.
func milliOf(value model.SampleValue, full float64) int {
	return int(math.Round(float64(value) / full * 1000))
}

// xidOf takes an XID code; 0 is a GPU without an error.
func xidOf(value model.SampleValue) (code int, ok bool) {
	if !inBounds(value, largestXID) || float64(value) != math.Trunc(float64(value)) {
		return 0, false
	}
	return int(value), true
}

// ageOf returns how old a sample was that was taken at a Unix time in seconds, at the time of the query. Both times are
// the server's, so the clocks of server and scheduler need not agree.
func ageOf(query model.Time, taken model.SampleValue) (time.Duration, bool) {
	seconds := float64(query)/1000 - float64(taken)
	if !(math.Abs(seconds) < math.MaxInt64/float64(time.Second)) {
		return 0, false
	}
	return max(0, time.Duration(seconds*float64(time.Second))), true
}

// priceOf takes a price in dollars. Nothing is not a price but the lack of one: exporters write 0 for what they could
// not look up.
func priceOf(value model.SampleValue) (price.MicroDollars, bool) {
	amount, err := price.FromDollars(float64(value))
	return amount, err == nil && amount > 0
}
