package claimview

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
)

// Slices are the GPUs that the resource slices of all nodes describe. They are immutable.
type Slices struct {
	drivers []string
	known   map[*resourcev1.ResourceSlice]struct{}
	list    []*resourcev1.ResourceSlice
	nodes   map[string]*Node
	locals  map[string]*LocalDevices
	// numbered is the last number that was given to the state of a node.
	numbered uint64
	// elsewhere are slices with devices that belong to no single node.
	elsewhere []*resourcev1.ResourceSlice
	// kinds are nodes that all differ, those with the least memory first. Two states of all slices have the same kinds,
	// and the same devices elsewhere, if kindsKey is the same.
	kinds    []*Node
	kindsKey string
}

// NoSlices is the state before any slice is read. Devices of these drivers are GPUs.
func NoSlices(drivers []string) *Slices { return &Slices{drivers: drivers} }

// List returns all slices.
func (c *Slices) List() []*resourcev1.ResourceSlice { return c.list }

// Elsewhere returns the slices with devices that belong to no single node.
func (c *Slices) Elsewhere() []*resourcev1.ResourceSlice { return c.elsewhere }

// Kinds returns nodes that all differ, those with the least memory first.
func (c *Slices) Kinds() []*Node { return c.kinds }

// KindsKey is equal for states with the same kinds of nodes, and the same devices elsewhere.
func (c *Slices) KindsKey() string { return c.kindsKey }

// Number is another number when devices have come or changed.
func (c *Slices) Number() uint64 { return c.numbered }

// Len is the number of nodes with GPUs.
func (c *Slices) Len() int { return len(c.nodes) }

// Names are the nodes with GPUs.
func (c *Slices) Names() iter.Seq[string] { return maps.Keys(c.nodes) }

// Node returns the GPUs of a node; nil for none.
func (c *Slices) Node(name string) *Node { return c.nodes[name] }

// Local returns the devices of all drivers that only this node can have; nil for none.
func (c *Slices) Local(name string) *LocalDevices { return c.locals[name] }

// Sole returns what slices say of a node whose kubelet offers no GPUs, so that none is counted twice; nil for nothing.
func (c *Slices) Sole(g *gpuview.Node) *Node {
	if g.Empty().Mode != gpu.ModeDRA && g.Offered() {
		return nil
	}
	return c.nodes[g.Node.Name]
}

// Changed returns the nodes whose GPUs are others than before.
func (c *Slices) Changed(before *Slices) []string {
	var names []string
	for name, n := range c.nodes {
		if before.nodes[name] != n {
			names = append(names, name)
		}
	}
	for name := range before.nodes {
		if c.nodes[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// Read reads the slices as they are now; the state is the same if none has changed. An informer replaces a slice that
// changes, so that one is known by its address.
func (c *Slices) Read(list []*resourcev1.ResourceSlice) *Slices {
	if len(list) == len(c.list) &&
		!slices.ContainsFunc(list, func(s *resourcev1.ResourceSlice) bool { _, ok := c.known[s]; return !ok }) {
		return c
	}
	fresh := &Slices{
		drivers: c.drivers, known: make(map[*resourcev1.ResourceSlice]struct{}, len(list)), list: list,
		nodes: map[string]*Node{}, locals: map[string]*LocalDevices{}, numbered: c.numbered,
	}
	newest := map[[2]string]int64{}
	for _, s := range list {
		fresh.known[s] = struct{}{}
		newest[poolOf(s)] = max(newest[poolOf(s)], s.Spec.Pool.Generation)
	}
	devices, others := map[string][]sourceDevice{}, map[string][]sourceDevice{}
	counters := map[counterKey]amounts{}
	for _, s := range list {
		if s.Spec.NodeName == nil || *s.Spec.NodeName == "" {
			fresh.elsewhere = append(fresh.elsewhere, s)
		}
		if s.Spec.Pool.Generation < newest[poolOf(s)] {
			continue
		}
		to := others
		if slices.Contains(c.drivers, s.Spec.Driver) {
			to = devices
			for i := range s.Spec.SharedCounters {
				set := &s.Spec.SharedCounters[i]
				counters[counterKey{s.Spec.Driver, s.Spec.Pool.Name, set.Name}] = countersOf(set.Counters)
			}
		}
		for i := range s.Spec.Devices {
			if node := nodeOf(s, &s.Spec.Devices[i]); node != "" {
				to[node] = append(to[node], sourceDevice{s, &s.Spec.Devices[i]})
			}
		}
	}
	pools := changedPools(c, list, fresh.known)
	for name, of := range devices {
		if known := c.nodes[name]; known != nil && len(of) == known.sources && !anyOf(pools, of) {
			fresh.nodes[name] = known
			continue
		}
		fresh.numbered++
		fresh.nodes[name] = readDeviceNode(name, fresh.numbered, of, counters)
	}
	fresh.readLocals(c, pools, devices, others)
	fresh.sortKinds()
	return fresh
}

// anyOf reports whether a device belongs to one of the pools: the counters that it takes of may be in another slice of
// its pool.
func anyOf(pools sets.Set[[2]string], devices []sourceDevice) bool {
	return slices.ContainsFunc(devices, func(d sourceDevice) bool { return pools.Has(poolOf(d.slice)) })
}

func poolOf(s *resourcev1.ResourceSlice) [2]string { return [2]string{s.Spec.Driver, s.Spec.Pool.Name} }

// changedPools are those with a slice that came, went or was replaced.
func changedPools(old *Slices, list []*resourcev1.ResourceSlice,
	now map[*resourcev1.ResourceSlice]struct{}) sets.Set[[2]string] {
	changed := sets.New[[2]string]()
	for _, s := range list {
		if _, known := old.known[s]; !known {
			changed.Insert(poolOf(s))
		}
	}
	for _, s := range old.list {
		if _, still := now[s]; !still {
			changed.Insert(poolOf(s))
		}
	}
	return changed
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

func (c *Slices) sortKinds() {
	byKind := map[string]*Node{}
	for _, n := range c.nodes {
		kind := c.kindOf(n)
		if known := byKind[kind]; known == nil || n.name < known.name {
			byKind[kind] = n
		}
	}
	for _, n := range byKind {
		c.kinds = append(c.kinds, n)
	}
	slices.SortFunc(c.kinds, func(a, b *Node) int {
		if a.empty.MemMiB != b.empty.MemMiB {
			return a.empty.MemMiB - b.empty.MemMiB
		}
		return strings.Compare(c.kindOf(a), c.kindOf(b))
	})
	var key strings.Builder
	for _, n := range c.kinds {
		fmt.Fprintln(&key, c.kindOf(n))
	}
	for _, s := range c.elsewhere {
		fmt.Fprintf(&key, "%p\n", s)
	}
	c.kindsKey = key.String()
}

// kindOf is equal for nodes whose GPUs are alike, and which have as many devices of each other driver.
func (c *Slices) kindOf(n *Node) string { return n.kind + c.locals[n.name].others }
