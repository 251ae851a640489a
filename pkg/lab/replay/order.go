package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/lab/trace"
)

func newRandom(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0x6265727468)) //nolint:gosec // reproducible, not secret
}

// saturate is the workload of the published method: the jobs sorted by name, shuffled by the seed, and tuned to a
// demand of targetMilli GPU milli: while there is less, clones of random jobs are appended; while there is more, random
// jobs are taken out. (Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 6.)
func saturate(jobs []trace.Job, targetMilli int64, seed uint64) []trace.Job {
	list := slices.Clone(jobs)
	slices.SortStableFunc(list, func(a, b trace.Job) int { return strings.Compare(a.Name, b.Name) })
	random := newRandom(seed)
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	demand := int64(0)
	for i := range list {
		demand += list[i].MilliGPU() * int64(list[i].Pods)
	}
	if demand == 0 {
		return list
	}
	original := len(list)
	for demand < targetMilli {
		clone := list[random.IntN(original)]
		clone.Name = fmt.Sprintf("%s-c%d", clone.Name, len(list)-original)
		demand += clone.MilliGPU() * int64(clone.Pods)
		list = append(list, clone)
	}
	for demand > targetMilli && len(list) > 1 {
		i := random.IntN(len(list))
		demand -= list[i].MilliGPU() * int64(list[i].Pods)
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// shuffled returns the objects in an order that depends on the seed; seed 0 leaves them as they are.
func shuffled(objects []runtime.Object, seed uint64) []runtime.Object {
	list := slices.Clone(objects)
	if seed != 0 {
		newRandom(seed).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}
