// Package fleet counts the GPUs that work shares: by model, by the size of nodes, by memory and by NVLink domain.
//
// The learner sets each node as it changes and reads the sums, by which demand is spread over what can serve it. A
// fleet knows nothing of pods, and nothing of what is free.
package fleet

import "berth.dev/berth/pkg/gpu/mix"

// Node is what counts of a node.
type Node struct {
	Model  string
	GPUs   int
	MemMiB int
	// Linked reports that NVLink connects some of its GPUs.
	Linked bool
	// Clique is the NVLink domain that spans nodes, empty for none.
	Clique string
}

// Fleet is the nodes and their sums. It is not safe for concurrent use.
type Fleet struct {
	nodes    map[string]Node
	capacity mix.Capacity
	// sizes are nodes by how many GPUs they have, memories nodes by the memory of their GPUs.
	sizes, memories map[int]int
	cliques         int
	// gpus is all capacity, counted what it was, and in how many models, when a change was last reported.
	gpus, counted, countedModels int
}

// New returns a fleet without nodes.
func New() *Fleet {
	return &Fleet{nodes: map[string]Node{}, capacity: mix.Capacity{}, sizes: map[int]int{}, memories: map[int]int{}}
}

// Set counts the node as it is now.
func (f *Fleet) Set(name string, n Node) {
	if f.nodes[name] == n {
		return
	}
	f.Remove(name)
	f.nodes[name] = n
	if n.GPUs > 0 {
		f.capacity[n.Model] = mix.Stock{GPUs: f.capacity[n.Model].GPUs + n.GPUs, MemMiB: n.MemMiB, Linked: n.Linked}
	}
	f.gpus += n.GPUs
	f.sizes[n.GPUs]++
	f.memories[n.MemMiB]++
	if n.Clique != "" {
		f.cliques++
	}
}

// Remove takes the node out. It is idempotent.
func (f *Fleet) Remove(name string) {
	n, ok := f.nodes[name]
	if !ok {
		return
	}
	delete(f.nodes, name)
	if n.Clique != "" {
		f.cliques--
	}
	f.gpus -= n.GPUs
	stock := f.capacity[n.Model]
	if stock.GPUs -= n.GPUs; stock.GPUs > 0 {
		f.capacity[n.Model] = stock
	} else {
		delete(f.capacity, n.Model)
	}
	release(f.sizes, n.GPUs)
	release(f.memories, n.MemMiB)
}

func release(nodes map[int]int, key int) {
	if nodes[key]--; nodes[key] == 0 {
		delete(nodes, key)
	}
}

// Capacity is the GPUs by model. The caller must not keep it: it changes with the fleet.
func (f *Fleet) Capacity() mix.Capacity { return f.capacity }

// Changed reports, once for each change, that the capacity has another number of models, or has changed by more than a
// fiftieth since it last did: a fleet that starts up or is replaced arrives one node at a time.
func (f *Fleet) Changed() bool {
	if change := f.gpus - f.counted; len(f.capacity) == f.countedModels && max(change, -change)*50 <= f.counted {
		return false
	}
	f.counted, f.countedModels = f.gpus, len(f.capacity)
	return true
}

// Largest is the most GPUs of one node.
func (f *Fleet) Largest() int {
	most := 0
	for gpus := range f.sizes {
		most = max(most, gpus)
	}
	return most
}

// LeastMemMiB is the least memory of a GPU in the fleet that holds so much, 0 where none does.
func (f *Fleet) LeastMemMiB(holds int) int {
	least := 0
	for m := range f.memories {
		if m >= holds && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}

// Cliques is how many nodes are in an NVLink domain that spans nodes.
func (f *Fleet) Cliques() int { return f.cliques }

// ByClique counts entries of nodes by NVLink domain, and all of them. Nodes that the fleet does not have do not count.
func (f *Fleet) ByClique(nodes []string) (byClique map[string]int, total int) {
	byClique = map[string]int{}
	for _, name := range nodes {
		if n, ok := f.nodes[name]; ok {
			byClique[n.Clique]++
			total++
		}
	}
	return byClique, total
}
