package gpu

import (
	"maps"
	"slices"
	"strings"
)

// Capacity is the GPUs of a cluster by model.
type Capacity map[string]Stock

// Stock is the GPUs of one model.
type Stock struct {
	GPUs int
	// MemMiB is the memory of each, 0 if it is unknown. Linked reports that NVLink connects those of a node.
	MemMiB int
	Linked bool
}

// gpus counts all of them.
func (c Capacity) gpus() int {
	total := 0
	for _, s := range c {
		total += s.GPUs
	}
	return total
}

// accepts reports whether the request runs on GPUs of that model.
func (c Capacity) accepts(r *Request, model string) bool {
	linked := r.Count > 1 && r.Interconnect == InterconnectRequired
	return r.AcceptsModel(model) && c[model].serves(r.MinMemMiB, linked)
}

func (s Stock) serves(minMemMiB int, linked bool) bool {
	return s.MemMiB >= minMemMiB && (s.Linked || !linked)
}

// on returns the distribution in which the classes say by the models of this capacity what they accept, instead of by
// memory and links.
func (d *Distribution) on(c Capacity) *Distribution {
	if len(c) == 0 || !slices.ContainsFunc(d.portions, func(p Portion) bool { return p.MinMemMiB > 0 || p.Linked }) {
		return d
	}
	models := slices.Sorted(maps.Keys(c))
	n := *d
	n.portions = slices.Clone(d.portions)
	for i := range n.portions {
		p := &n.portions[i]
		if p.MinMemMiB == 0 && !p.Linked {
			continue
		}
		var accepted []string
		for _, model := range models {
			if p.accepts(model) && c[model].serves(p.MinMemMiB, p.Linked) {
				accepted = append(accepted, model)
			}
		}
		if p.MinMemMiB, p.Linked = 0, false; len(accepted) > 0 && len(accepted) < len(models) {
			p.Models = strings.Join(accepted, "|")
		}
	}
	return &n
}
