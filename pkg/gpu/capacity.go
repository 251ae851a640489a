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

// Add adds n times the stock of a node, which may be negative, to that of its model.
func (c Capacity) Add(model string, s Stock, n int) {
	if s.GPUs == 0 {
		return
	}
	if s.GPUs = c[model].GPUs + n*s.GPUs; s.GPUs > 0 {
		c[model] = s
	} else {
		delete(c, model)
	}
}

// GPUs counts all of them.
func (c Capacity) GPUs() int {
	total := 0
	for _, s := range c {
		total += s.GPUs
	}
	return total
}

// Serves reports whether GPUs of the model have the memory and the links.
func (s Stock) Serves(minMemMiB int, linked bool) bool {
	return s.MemMiB >= minMemMiB && (s.Linked || !linked)
}

// On returns the distribution whose shapes name the models of this capacity that they accept, instead of memory and
// links.
func (d *Distribution) On(c Capacity) *Distribution {
	if len(c) == 0 || !slices.ContainsFunc(d.Portions, func(p Portion) bool { return p.MinMemMiB > 0 || p.Linked }) {
		return d
	}
	models := slices.Sorted(maps.Keys(c))
	n := *d
	n.Portions = slices.Clone(d.Portions)
	for i := range n.Portions {
		p := &n.Portions[i]
		if p.MinMemMiB == 0 && !p.Linked {
			continue
		}
		var accepted []string
		for _, model := range models {
			if p.acceptsModel(model) && c[model].Serves(p.MinMemMiB, p.Linked) {
				accepted = append(accepted, model)
			}
		}
		if p.MinMemMiB, p.Linked = 0, false; len(accepted) > 0 && len(accepted) < len(models) {
			p.Models = strings.Join(accepted, "|")
		}
	}
	return &n
}
