package replay

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// timer is the moment at which a pod, or a whole gang, has run for its duration, or writes a checkpoint.
type timer struct {
	checkpoint bool

	at       time.Time
	job      *jobState
	epoch    int
	pod      *podState // nil for a gang
	sequence int
}

// compareTimers orders timers by time, then by the order in which they were set.
func compareTimers(a, b timer) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.sequence, b.sequence))
}

// proceed records progress of the work.
func (c *cluster) proceed(at time.Time) {
	c.progress = at
	c.record.mark()
}

// arrive creates the pods of the next job.
func (c *cluster) arrive(now time.Time) {
	j := &c.jobs[c.next]
	c.next++
	c.proceed(now)
	j.arrived = now
	if c.options.Mode == replayed.VirtualTime {
		j.arrived = c.arrival(c.next - 1) // the pods may come a little later, when the scheduler was in a cycle
	}
	if j.Gang {
		if err := c.world.API.Create(podGroupObject(&j.Job)); err != nil {
			c.fail(err)
			return
		}
		apart()
	}
	c.record.arrived(&j.Job)
	if j.GPUs > 0 && j.GPUMilli < 1000 {
		c.sharePods += j.Pods
	}
	for i := range j.Pods {
		c.create(&podState{job: j, index: i})
	}
	if c.options.Mode == replayed.ArrivalOrder {
		c.options.Progress.Offer(j.Pods) // it is decided before the next one comes
	}
}

func (c *cluster) create(p *podState) {
	pod := podObject(&p.job.Job, p.index, p.attempt, c.profile, c.shares, &c.asking)
	p.key = types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	c.ledger.mix.Add(pod, stranded.Need{CPUMilli: p.job.CPUMilli, MemoryBytes: p.job.MemoryMiB << 20, Count: p.job.GPUs,
		Milli: p.job.GPUMilli, Models: p.job.Models})
	c.pods[p.key] = p
	c.unbound++
	pod.CreationTimestamp.Time = time.Now()
	c.gangOf(pod)
	if err := c.world.API.Create(pod); err != nil {
		c.fail(err)
	}
	// Pods that are created at the same instant have the same position in the queue, and their order would be random.
	apart()
}

// apart lets time pass between two changes, so that all effects of the first one come before the second. The listeners
// of informers are called in any order for changes at the same instant.
func apart() {
	time.Sleep(time.Microsecond) //nolint:forbidigo // virtual time
}

func (c *cluster) fail(err error) {
	if c.err == nil {
		c.err = fmt.Errorf("replaying the trace: %w", err)
	}
}

// bound handles the binding of a pod.
func (c *cluster) bound(p *podState, pod *v1.Pod, now time.Time) {
	c.unbound--
	p.node = pod.Spec.NodeName
	var realMilli int64
	if p.job != nil {
		realMilli = p.job.MilliGPU()
	} else {
		c.options.Progress.Offer(1)
		realMilli = c.need(pod)
		c.proceed(now)
	}
	p.allocation = c.ledger.place(pod, realMilli)
	if g := c.gangOf(pod); g != nil {
		c.joined(g, p, true)
	}
	if !p.waited {
		p.waited = true
		if c.options.Mode == replayed.VirtualTime {
			c.options.Progress.Offer(1)
		}
		c.proceed(now)
		c.record.waited(now.Sub(p.job.arrived), c.failures.reasons(pod))
	}
	j := p.job
	if j == nil {
		return
	}
	j.bound++
	if _, known := c.record.starts[j.Name]; j.bound == j.Pods && !known {
		c.record.starts[j.Name] = now.Sub(c.start).Seconds()
	}
	if j.Gang {
		if j.bound == j.Pods {
			c.gangComplete(j, now)
		}
		return
	}
	c.begin(&p.work, timer{job: j, epoch: j.epoch, pod: p}, now)
}

// gangComplete starts the work of a gang: all of its pods have nodes.
func (c *cluster) gangComplete(j *jobState, now time.Time) {
	if !j.waited {
		j.waited = true
		c.record.gangWaits = append(c.record.gangWaits, now.Sub(j.arrived))
		c.mu.Lock()
		c.starts.started(types.NamespacedName{Namespace: namespaceOf(&j.Job), Name: j.Name}, now)
		c.mu.Unlock()
	}
	c.begin(&j.work, timer{job: j, epoch: j.epoch}, now)
}

func (c *cluster) setTimer(e timer) {
	c.lastTimer++
	e.sequence = c.lastTimer
	c.timers.Push(e)
}

// finish ends a pod or a gang that has run for its duration.
func (c *cluster) finish(e timer) {
	j := e.job
	c.proceed(e.at)
	if e.pod != nil {
		c.remove(e.pod)
		j.remaining--
	} else {
		for i := range j.Pods {
			if p := c.pods[podKey(&j.Job, i)]; p != nil {
				c.remove(p)
			}
		}
		j.remaining = 0
		j.epoch++
		c.world.API.Delete(podGroupResource, types.NamespacedName{Namespace: namespaceOf(&j.Job), Name: j.Name})
	}
	if j.remaining == 0 {
		c.record.completions = append(c.record.completions, time.Since(j.arrived))
	}
}

func podKey(j *trace.Job, index int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespaceOf(j), Name: j.PodName(index)}
}

func (c *cluster) remove(p *podState) {
	p.deleting = true
	c.world.API.Delete(podResource, p.key)
	apart()
}

// gone handles the deletion of a pod: by the replay because it has ended, or by the scheduler's preemption. A preempted
// pod is created again, as by a Job's controller. It, or its whole gang, continues from the last checkpoint, else from
// the beginning.
func (c *cluster) gone(p *podState) {
	delete(c.pods, p.key)
	hadNode := p.allocation != nil || p.node != "" && !p.deleting
	c.left(p)
	if p.allocation != nil {
		c.ledger.release(p.allocation)
		p.allocation = nil
	}
	c.record.lastNode[p.key] = p.node
	if p.deleting {
		return
	}
	if hadNode {
		c.record.preemptions++
	} else {
		c.unbound--
	}
	j := p.job
	if j == nil {
		return
	}
	if hadNode {
		j.bound--
		if now := time.Now(); j.Gang {
			j.epoch++
			c.interrupt(&j.work, j, int64(j.Pods)*j.MilliGPU(), now)
		} else {
			c.interrupt(&p.work, j, j.MilliGPU(), now)
		}
	}
	c.create(&podState{job: j, index: p.index, attempt: p.attempt + 1, waited: true, work: p.work})
}
