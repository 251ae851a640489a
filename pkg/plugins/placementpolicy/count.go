package placementpolicy

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/clusterwide"
)

// Count says how many of the licenses are free for which the pods ask, and who holds them. A pool is a rule that
// counts.
func (b *book) Count(asking []*v1.Pod) *clusterwide.Count {
	v := b.view.Load()
	if v == nil {
		return nil
	}
	index, asks := map[int]int{}, make([][]int64, len(asking))
	for _, pod := range asking {
		for number := range b.placed(v, pod).Licenses() {
			if _, known := index[number]; !known {
				index[number] = len(index)
			}
		}
	}
	set, used := b.ledger.Used()
	if len(index) == 0 || set != v.set {
		return nil // of newer rules the filters learn
	}
	numbers, free := make([]int, len(index)), make([]int64, len(index))
	for number, i := range index {
		numbers[i], free[i] = number, set.Count(number)-used[number]
	}
	for i, pod := range asking {
		asks[i] = make([]int64, len(index))
		for number, amount := range b.placed(v, pod).Licenses() {
			asks[i][index[number]] = amount
		}
	}
	covers := func(pool int, node string) bool { return set.CountsOn(numbers[pool], b.marksByName(v, node)) }
	return &clusterwide.Count{Free: free, Asks: asks, Covers: covers, Uses: func(pod *v1.Pod, node string) []int64 {
		d := b.placed(v, pod)
		if !d.UsesLicenses() {
			return nil
		}
		uses := make([]int64, len(index))
		for number, amount := range d.Licenses() {
			if i, asked := index[number]; asked && covers(i, node) {
				uses[i] = amount
			}
		}
		return uses
	}}
}
