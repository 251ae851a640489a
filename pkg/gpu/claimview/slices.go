package claimview

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// Slices are the GPUs that the resource slices of all nodes describe. They are immutable.
type Slices struct {
	drivers []string
	known   map[*resourcev1.ResourceSlice]struct{}
	nodes   map[string]*Node
	// byPool are the nodes that have devices of a pool.
	byPool map[pool][]*Node
	// byMemory are the nodes, those with the least memory of a GPU first.
	byMemory []*Node
	// kinds has a device of each kind, kindOrder lists them by the first node that has one.
	kinds     map[kind]*claimDevice
	kindOrder []kind
}

// NoSlices is the state before any slice is read. The devices of these drivers are GPUs.
func NoSlices(drivers []string) *Slices { return &Slices{drivers: drivers} }

// Names are the nodes with GPUs.
func (c *Slices) Names() iter.Seq[string] { return maps.Keys(c.nodes) }

// Sole is what slices say about a node whose kubelet offers no GPUs, so that none is counted twice; nil for others.
func (c *Slices) Sole(g *gpuview.Node) *Node {
	if g.Empty().Mode != gpu.ModeDRA && g.Offered() {
		return nil
	}
	return c.nodes[g.Node.Name]
}

// pool names a pool of devices, whose slices belong together.
type pool struct{ driver, name string }

func poolOf(s *resourcev1.ResourceSlice) pool { return pool{s.Spec.Driver, s.Spec.Pool.Name} }

// Read reads the slices as they are now; it returns the same object if none has changed. An informer replaces a slice
// that changes, so that addresses can be compared.
func (c *Slices) Read(list []*resourcev1.ResourceSlice) *Slices {
	if len(list) == len(c.known) &&
		!slices.ContainsFunc(list, func(s *resourcev1.ResourceSlice) bool { _, ok := c.known[s]; return !ok }) {
		return c
	}
	fresh := &Slices{
		drivers: c.drivers, known: make(map[*resourcev1.ResourceSlice]struct{}, len(list)),
		nodes: map[string]*Node{}, byPool: map[pool][]*Node{}, kinds: map[kind]*claimDevice{},
	}
	for _, s := range list {
		fresh.known[s] = struct{}{}
	}
	ours := c.current(list)
	reached := map[pool]sets.Set[string]{}
	for _, s := range ours {
		for i := range s.Spec.Devices {
			if node := nodeOf(s, &s.Spec.Devices[i]); node != "" {
				if reached[poolOf(s)] == nil {
					reached[poolOf(s)] = sets.New[string]()
				}
				reached[poolOf(s)].Insert(node)
			}
		}
	}
	sources := map[string][]*resourcev1.ResourceSlice{}
	for _, s := range ours {
		for node := range reached[poolOf(s)] {
			sources[node] = append(sources[node], s)
		}
	}
	for name, of := range sources {
		n := c.nodes[name]
		if n == nil || !slices.Equal(n.sources, of) {
			n = readNode(name, of)
		}
		fresh.nodes[name] = n
		fresh.byMemory = append(fresh.byMemory, n)
	}
	for of, names := range reached {
		for name := range names {
			fresh.byPool[of] = append(fresh.byPool[of], fresh.nodes[name])
		}
	}
	fresh.index()
	return fresh
}

// current are the slices of the drivers that belong to the newest generation of their pool, by name.
func (c *Slices) current(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	newest := map[pool]int64{}
	for _, s := range list {
		newest[poolOf(s)] = max(newest[poolOf(s)], s.Spec.Pool.Generation)
	}
	ours := slices.DeleteFunc(slices.Clone(list), func(s *resourcev1.ResourceSlice) bool {
		return s.Spec.Pool.Generation < newest[poolOf(s)] || !slices.Contains(c.drivers, s.Spec.Driver)
	})
	// Informers list slices in any order, and the index of a GPU must not depend on it.
	slices.SortFunc(ours, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return ours
}

// index sorts the nodes and finds the kinds of their devices.
func (c *Slices) index() {
	slices.SortFunc(c.byMemory, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(a.empty.MemMiB, b.empty.MemMiB), strings.Compare(a.name, b.name))
	})
	for _, n := range c.byMemory {
		for i := range n.devices {
			if d := &n.devices[i]; c.kinds[d.kind] == nil {
				c.kinds[d.kind] = d
				c.kindOrder = append(c.kindOrder, d.kind)
			}
		}
	}
}

// nodeOf is the one node that can have the device, empty where there may be more.
func nodeOf(s *resourcev1.ResourceSlice, d *resourcev1.Device) string {
	switch {
	case s.Spec.NodeName != nil && *s.Spec.NodeName != "":
		return *s.Spec.NodeName
	case s.Spec.PerDeviceNodeSelection != nil && *s.Spec.PerDeviceNodeSelection && d.NodeName != nil:
		return *d.NodeName
	}
	return ""
}
