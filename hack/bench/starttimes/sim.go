package main

import (
	"cmp"
	"math"

	"berth.dev/berth/pkg/minheap"
)

// policy decides what is kept for waiting gangs.
type policy interface {
	// plan is called before every pass over the queue.
	plan(c *cluster)
	// mayEnter reports whether the job may start on the node now, which has enough free.
	mayEnter(c *cluster, j *job, node int) bool
	started(c *cluster, j *job)
	ended(c *cluster, j *job)
}

// node is one node of the cluster.
type node struct {
	free int
	jobs []*job
}

// cluster is the state of a simulation.
type cluster struct {
	now   float64
	nodes []node
	queue []*job
	ends  minheap.Heap[*job]
}

func compareEnds(a, b *job) int { return cmp.Compare(a.end, b.end) }

// tick is how often, in seconds, a plan is looked at again when nothing happens.
const tick = 300

// simulate runs the jobs, which are in the order of their submission, on nodes of 8 GPUs until the last one has ended.
func simulate(jobs []job, nodes int, p policy) {
	c := &cluster{nodes: make([]node, nodes), ends: minheap.Heap[*job]{Compare: compareEnds}}
	for i := range c.nodes {
		c.nodes[i].free = gpusPerNode
	}
	next := 0
	for next < len(jobs) || c.ends.Len() > 0 {
		t := math.Inf(1)
		if next < len(jobs) {
			t = jobs[next].submit
		}
		if c.ends.Len() > 0 {
			t = min(t, c.ends.Items[0].end)
		}
		if len(c.queue) > 0 {
			t = min(t, c.now+tick)
		}
		c.now = t
		for c.ends.Len() > 0 && c.ends.Items[0].end <= t {
			j := c.ends.Pop()
			c.remove(j)
			p.ended(c, j)
		}
		for next < len(jobs) && jobs[next].submit <= t {
			j := &jobs[next]
			next++
			if j.members() > nodes {
				continue
			}
			c.queue = append(c.queue, j)
		}
		for c.pass(p) {
		}
	}
}

// pass tries all waiting jobs in their order, and reports whether a gang has started.
func (c *cluster) pass(p policy) bool {
	if len(c.queue) == 0 {
		return false
	}
	p.plan(c)
	again := false
	most := c.mostFree()
	left := c.queue[:0]
	for at, j := range c.queue {
		if again {
			left = append(left, c.queue[at:]...)
			break
		}
		if j.gpus <= gpusPerNode && j.gpus > most || most == 0 {
			left = append(left, j)
			continue
		}
		on := c.place(j, p)
		if on == nil {
			left = append(left, j)
			continue
		}
		c.start(j, on)
		p.started(c, j)
		again = j.members() > 0
		most = c.mostFree()
	}
	c.queue = left
	return again
}

// mostFree returns the most that is free on a node.
func (c *cluster) mostFree() int {
	most := 0
	for i := range c.nodes {
		most = max(most, c.nodes[i].free)
	}
	return most
}

// place returns the nodes on which the job can start now: for a single pod the fullest one.
func (c *cluster) place(j *job, p policy) []int {
	if m := j.members(); m > 0 {
		var on []int
		for i := range c.nodes {
			if c.nodes[i].free == gpusPerNode && p.mayEnter(c, j, i) {
				if on = append(on, i); len(on) == m {
					return on
				}
			}
		}
		return nil
	}
	best := -1
	for i := range c.nodes {
		if f := c.nodes[i].free; f >= j.gpus && (best < 0 || f < c.nodes[best].free) && p.mayEnter(c, j, i) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return []int{best}
}

func (c *cluster) start(j *job, on []int) {
	j.start, j.end, j.nodes = c.now, c.now+j.run, on
	for _, i := range on {
		n := &c.nodes[i]
		n.free -= min(j.gpus, gpusPerNode)
		n.jobs = append(n.jobs, j)
	}
	c.ends.Push(j)
}

func (c *cluster) remove(j *job) {
	for _, i := range j.nodes {
		n := &c.nodes[i]
		n.free += min(j.gpus, gpusPerNode)
		for k, o := range n.jobs {
			if o == j {
				n.jobs = append(n.jobs[:k], n.jobs[k+1:]...)
				break
			}
		}
	}
}

// none keeps nothing.
type none struct{}

func (none) plan(*cluster)                     {}
func (none) mayEnter(*cluster, *job, int) bool { return true }
func (none) started(*cluster, *job)            {}
func (none) ended(*cluster, *job)              {}
