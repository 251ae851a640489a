package packing

import (
	"berth.dev/berth/pkg/gpu"
)

// l4, a100 and h100 are products that differ in what pods may ask for.
var (
	l4   = product{memMiB: 24 << 10, generation: 89}
	a100 = product{memMiB: 40 << 10, generation: 80, linked: true}
	h100 = product{memMiB: 80 << 10, generation: 90, linked: true}
)

// asked is a kind of pod of a hard family and how often it comes.
type asked struct {
	weight      float64
	count       int
	cores       float64
	model       string
	links       gpu.Interconnect
	members     int
	laterWeight float64
}

// Hard are families in which a rule that is good elsewhere can lose to a simple one: pods that accept one model
// beside others that only prefer its links, work that changes, CPU that strands GPUs, sizes that do not add up to a
// node, and cheap nodes that large gangs need.
func Hard() []Family {
	const preferred, required = gpu.InterconnectPreferred, gpu.InterconnectRequired
	linked := []shape{
		{"l", "L4", 4, 48_000, 50, l4, 0},
		{"h", "H100", 8, 128_000, 25, h100, 0},
	}
	three := []shape{
		{"l", "L4", 4, 48_000, 40, l4, 0},
		{"a", "A100", 8, 96_000, 15, a100, 0},
		{"h", "H100", 8, 128_000, 15, h100, 0},
	}
	eights := []shape{{"n8", "A", 8, 96_000, 50, product{}, 0}}
	tight := []shape{{"n8", "A", 8, 48_000, 50, product{}, 0}}
	fours := []shape{{"n4", "A", 4, 32_000, 100, product{}, 0}}
	mixed := []shape{{"n4", "A", 4, 32_000, 50, product{}, 0}, {"n8", "A", 8, 96_000, 25, product{}, 0}}
	priced := []shape{{"n2", "A", 2, 24_000, 80, product{}, 3}, {"n8", "A", 8, 96_000, 30, product{}, 9.6}}
	large := []shape{{"n4", "A", 4, 48_000, 50, product{}, 5}, {"n8", "A", 8, 96_000, 25, product{}, 8}}
	return []Family{
		hard("links: pods for H100 beside pods of several GPUs", linked,
			asked{35, 1, 4, "", 0, 1, 0}, asked{15, 2, 8, "", 0, 1, 0}, asked{10, 4, 16, "", 0, 1, 0},
			asked{10, 1, 6, "H100", 0, 1, 0}, asked{10, 2, 12, "H100", 0, 1, 0}, asked{7, 8, 48, "H100", 0, 1, 0}),
		hard("links: some prefer links", linked,
			asked{30, 1, 4, "", 0, 1, 0}, asked{15, 2, 8, "", 0, 1, 0}, asked{10, 4, 16, "", 0, 1, 0},
			asked{8, 4, 24, "H100", preferred, 1, 0}, asked{6, 8, 48, "H100", preferred, 1, 0},
			asked{8, 2, 12, "", preferred, 1, 0}),
		hard("links: some require links", linked,
			asked{40, 1, 4, "", 0, 1, 0}, asked{15, 2, 8, "", 0, 1, 0}, asked{10, 4, 16, "", 0, 1, 0},
			asked{10, 4, 24, "", required, 1, 0}, asked{6, 8, 48, "", required, 1, 0}),
		hard("links: three models", three,
			asked{40, 1, 4, "", 0, 1, 0}, asked{15, 2, 8, "", 0, 1, 0}, asked{8, 4, 16, "", 0, 1, 0},
			asked{10, 2, 12, "H100", 0, 1, 0}, asked{6, 4, 24, "H100", 0, 1, 0},
			asked{8, 4, 24, "A100", 0, 1, 0}, asked{3, 8, 48, "A100", 0, 1, 0}),

		hard("drift: from much CPU to little", eights,
			asked{50, 1, 16, "", 0, 1, 0}, asked{25, 2, 32, "", 0, 1, 0}, asked{10, 4, 56, "", 0, 1, 0},
			asked{0, 1, 4, "", 0, 1, 50}, asked{0, 2, 8, "", 0, 1, 25}, asked{0, 4, 16, "", 0, 1, 15},
			asked{0, 8, 32, "", 0, 1, 10}),
		hard("drift: from little CPU to much", eights,
			asked{50, 1, 4, "", 0, 1, 0}, asked{25, 2, 8, "", 0, 1, 0}, asked{15, 4, 16, "", 0, 1, 0},
			asked{10, 8, 32, "", 0, 1, 0},
			asked{0, 1, 16, "", 0, 1, 50}, asked{0, 2, 32, "", 0, 1, 25}, asked{0, 4, 56, "", 0, 1, 10}),
		hard("drift: from small pods to large ones", eights,
			asked{70, 1, 8, "", 0, 1, 10}, asked{20, 2, 16, "", 0, 1, 10}, asked{10, 4, 32, "", 0, 1, 30},
			asked{0, 8, 64, "", 0, 1, 25}),
		hard("drift: from large pods to small ones", eights,
			asked{10, 1, 8, "", 0, 1, 70}, asked{10, 2, 16, "", 0, 1, 20}, asked{30, 4, 32, "", 0, 1, 10},
			asked{25, 8, 64, "", 0, 1, 0}),

		hard("CPU: half of the pods ask for most of it", tight,
			asked{50, 1, 2, "", 0, 1, 0}, asked{50, 1, 12, "", 0, 1, 0}),
		hard("CPU: more is asked for than there is", tight,
			asked{40, 1, 4, "", 0, 1, 0}, asked{40, 1, 10, "", 0, 1, 0}, asked{20, 2, 16, "", 0, 1, 0}),
		hard("CPU: nodes with few cores and with many", mixed,
			asked{40, 1, 4, "", 0, 1, 0}, asked{30, 1, 14, "", 0, 1, 0}, asked{20, 2, 20, "", 0, 1, 0},
			asked{10, 4, 32, "", 0, 1, 0}),
		hard("CPU: pods without GPUs take a third", tight,
			asked{40, 1, 4, "", 0, 1, 0}, asked{15, 2, 8, "", 0, 1, 0}, asked{10, 4, 16, "", 0, 1, 0},
			asked{80, 0, 2, "", 0, 1, 0}),

		hard("sizes: 1 and 4 on 8", eights, asked{60, 1, 8, "", 0, 1, 0}, asked{40, 4, 32, "", 0, 1, 0}),
		hard("sizes: 1 and 8 on 8", eights, asked{80, 1, 8, "", 0, 1, 0}, asked{20, 8, 64, "", 0, 1, 0}),
		hard("sizes: 3 and 5 on 8", eights, asked{50, 3, 24, "", 0, 1, 0}, asked{50, 5, 40, "", 0, 1, 0}),
		hard("sizes: 2 and 6 on 8", eights, asked{60, 2, 16, "", 0, 1, 0}, asked{40, 6, 48, "", 0, 1, 0}),
		hard("sizes: 1 and 3 on 4", fours, asked{60, 1, 5, "", 0, 1, 0}, asked{40, 3, 15, "", 0, 1, 0}),
		hard("sizes: 2 and 4 on 4 and 8", mixed, asked{60, 2, 14, "", 0, 1, 0}, asked{40, 4, 28, "", 0, 1, 0}),

		hard("prices: gangs of 2 × 8 need the cheap nodes", priced,
			asked{80, 1, 6, "", 0, 1, 0}, asked{15, 2, 12, "", 0, 1, 0}, asked{5, 8, 64, "", 0, 2, 0}),
		hard("prices: pods of 8 need the cheap nodes", large,
			asked{60, 1, 6, "", 0, 1, 0}, asked{20, 2, 12, "", 0, 1, 0}, asked{10, 8, 64, "", 0, 1, 0}),
		hard("prices: gangs of 4 × 8 need the cheap nodes", large,
			asked{60, 1, 6, "", 0, 1, 0}, asked{30, 2, 12, "", 0, 1, 0}, asked{4, 8, 64, "", 0, 4, 0}),
		hard("prices: all fit everywhere", large,
			asked{60, 1, 6, "", 0, 1, 0}, asked{30, 2, 12, "", 0, 1, 0}, asked{10, 4, 24, "", 0, 1, 0}),
	}
}

func hard(name string, shapes []shape, of ...asked) Family {
	f := Family{name: name, shapes: shapes}
	sum, laterSum := 0.0, 0.0
	for _, a := range of {
		sum, laterSum = sum+a.weight, laterSum+a.laterWeight
	}
	for _, a := range of {
		var models []string
		if a.model != "" {
			models = []string{a.model}
		}
		k := newKind(int64(1000*a.cores), a.count, gpu.WholeMilli, models...)
		k.request.Interconnect, k.members = a.links, a.members
		k.shape = gpu.ShapeOf(&k.request, 0)
		f.kinds = append(f.kinds, k)
		f.weights = append(f.weights, a.weight/sum)
		if laterSum > 0 {
			f.later = append(f.later, a.laterWeight/laterSum)
		}
	}
	return f
}
