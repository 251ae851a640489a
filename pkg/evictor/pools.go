package evictor

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/eviction"
)

// addPools adds what plugins count for the whole cluster, as far as the request asks for it.
func (b *problemBuilder) addPools() {
	asking := make([]*v1.Pod, len(b.request.classes))
	for i := range b.request.classes {
		asking[i] = b.request.classes[i].pod
	}
	b.counts = b.evictor.Sources.Wide.Counts(asking, func(plugin string) bool {
		profile := b.evictor.Profiles.Of(asking[0])
		return profile != nil && slices.ContainsFunc(profile.ListPlugins().Filter.Enabled,
			func(p config.Plugin) bool { return p.Name == plugin })
	})
	for _, count := range b.counts {
		for i, free := range count.Free {
			pool := eviction.Pool{Free: free, Covers: make([]bool, len(b.cluster.Nodes))}
			for n := range b.cluster.Nodes {
				pool.Covers[n] = count.Covers(i, b.cluster.Nodes[n].Name)
			}
			b.problem.Pools = append(b.problem.Pools, pool)
		}
		for i := range asking {
			b.problem.Classes[i].Asks = append(b.problem.Classes[i].Asks, count.Asks[i]...)
		}
	}
}

// holds is how much of each pool the pod holds on the node.
func (b *problemBuilder) holds(pod *v1.Pod, node string) eviction.Vector {
	var all eviction.Vector
	for _, count := range b.counts {
		uses := count.Uses(pod, node)
		if uses == nil {
			uses = make([]int64, len(count.Free))
		}
		all = append(all, uses...)
	}
	return all
}

// giveBack counts what the pod holds as free, or as held if by is -1, and reports whether it holds something.
func (b *problemBuilder) giveBack(pod *v1.Pod, node string, by int64) bool {
	some := false
	for i, amount := range b.holds(pod, node) {
		b.problem.Pools[i].Free += amount * by
		some = some || amount > 0
	}
	return some
}
