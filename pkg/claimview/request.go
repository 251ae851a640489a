package claimview

import (
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/pkg/gpu"
)

// RequestOf sums up what is given as equal shares of a number of GPUs.
func RequestOf(given []gpu.Grant) gpu.Request {
	var r gpu.Request
	total, gpus := 0, sets.New[int]()
	for _, g := range given {
		if g.Slice != "" {
			at := slices.IndexFunc(r.Slices, func(s gpu.SliceCount) bool { return s.Resource == g.Slice })
			if at < 0 {
				at = len(r.Slices)
				r.Slices = append(r.Slices, gpu.SliceCount{Resource: g.Slice, Milli: g.Share.Milli})
			}
			r.Slices[at].Count++
			continue
		}
		total += g.Share.Milli
		gpus.Insert(g.Device)
	}
	slices.SortFunc(r.Slices, func(a, b gpu.SliceCount) int { return strings.Compare(a.Resource, b.Resource) })
	if n := gpus.Len(); n > 0 {
		r.Count, r.Milli = n, min(gpu.WholeMilli, int(math.Ceil(float64(total)/float64(n))))
	}
	return r
}
