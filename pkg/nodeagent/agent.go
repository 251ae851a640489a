// Package nodeagent tells the scheduler what only a node knows of its GPUs: which are in use, how they are connected,
// and which are healthy. It reads the kubelet and the driver, and writes annotations on its own Node object when
// something has changed.
//
// What was read last stays published while a source fails, for a bounded time; then it is taken back, and the scheduler
// counts as on a node without an agent. Annotations stay when the agent stops: the scheduler believes them only as far
// as the pods on the node and the kubelet's own counts allow.
package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
	"berth.dev/berth/pkg/nodeagent/podresources"
	"berth.dev/berth/pkg/wellknown"
)

// Kubelet tells which devices pods hold.
type Kubelet interface {
	Read(ctx context.Context) (podresources.State, error)
}

// Machine tells which GPUs there are. All of its methods return nvidiasmi.ErrAbsent on a machine that cannot tell.
type Machine interface {
	GPUs(ctx context.Context) ([]nvidiasmi.GPU, error)
	Slices(ctx context.Context) (map[string]int, error)
	// Minors are the minor numbers of the device files by UUID.
	Minors(ctx context.Context) (map[string]int, error)
	Topology(ctx context.Context) ([]nvidiasmi.Pair, error)
}

// Node is the Node object that the agent writes to.
type Node interface {
	// Read returns what the node says now.
	Read(ctx context.Context) (*NodeState, error)
	// Write sets annotations in one request, and removes those that are nil, and returns what the node says after it.
	Write(ctx context.Context, changes map[string]*string) (*NodeState, error)
}

// NodeState is what the agent needs to know of its Node object.
type NodeState struct {
	// Annotations are those that agents write.
	Annotations map[string]string
	// HAMi is set where HAMi's device plugin gives out the GPUs: it ignores which device the kubelet names.
	HAMi bool
}

// Intervals are how often the agent does what.
type Intervals struct {
	// Kubelet is the time between two readings of the kubelet, Machine of the driver.
	Kubelet, Machine time.Duration
	// Resync is after what time the Node object is read again, in case others have changed the annotations.
	Resync time.Duration
	// Stale is for how long what was read last is published while its source fails.
	Stale time.Duration
}

// Agent publishes the GPUs of one node.
type Agent struct {
	kubelet   Kubelet
	machine   Machine
	node      Node
	intervals Intervals
	metrics   *metrics
	// turned is when the loop was last alive, in nanoseconds of Unix time.
	turned atomic.Int64
	// unseen is since when the kubelet knows devices while nvidia-smi lists no GPU, in nanoseconds of Unix time; 0 if not.
	unseen atomic.Int64

	fromKubelet source[podresources.State]
	fromMachine source[hardware]
	// written is the node as far as known; nil when it has to be read first.
	written *NodeState
	// strangers is how many devices were last not told apart.
	strangers int
}

// source is what was last read of one side, and since when it fails.
type source[T any] struct {
	value T
	known bool
	// good is when it was last read, or when the agent started.
	good time.Time
	// absent is set where there is nothing to read from, which is no failure.
	absent bool
	err    error
}

// New makes an agent.
func New(kubelet Kubelet, machine Machine, node Node, intervals Intervals) *Agent {
	return &Agent{kubelet: kubelet, machine: machine, node: node, intervals: intervals, metrics: newMetrics()}
}

// The pauses between two attempts to write grow to the longest.
const firstPause, longestPause = time.Second, time.Minute

// reading is an answer of one side.
type reading[T any] struct {
	value T
	err   error
}

// Run reads and publishes until the context ends.
func (a *Agent) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	now := time.Now()
	a.fromKubelet.good, a.fromMachine.good = now, now
	// The two sides are read apart from each other and from the writing: either may hang.
	kubelets, machines := make(chan reading[podresources.State]), make(chan reading[hardware])
	go poll(ctx, a.intervals.Kubelet, kubelets, a.kubelet.Read)
	go poll(ctx, a.intervals.Machine, machines, newSurvey(a.machine).read)
	resync := time.NewTicker(a.intervals.Resync)
	defer resync.Stop()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	retry := time.NewTimer(0)
	defer retry.Stop()
	pause := newPause()
	for {
		a.turned.Store(time.Now().UnixNano())
		paused := false
		select {
		case <-ctx.Done():
			logger.Info("Stopping; the annotations stay")
			return
		case r := <-kubelets:
			a.take(ctx, "kubelet", r.err)
			accept(&a.fromKubelet, keepOffered(r, &a.fromKubelet))
		case r := <-machines:
			a.take(ctx, "nvidia-smi", r.err)
			a.missing(ctx, r)
			accept(&a.fromMachine, r)
		case <-resync.C:
			a.written = nil
		case <-beat.C: // what was read may have become stale
		case <-retry.C:
			paused = true
		}
		a.noteUnseen(ctx, time.Now())
		if pause.waiting && !paused {
			continue
		}
		if err := a.publish(ctx); err != nil && ctx.Err() == nil {
			wait := pause.next()
			logger.Error(err, "Publishing failed; will try again", "after", wait)
			retry.Reset(wait)
			continue
		}
		pause.reset()
	}
}

// poll reads at once and then at the interval, one reading at a time.
func poll[T any](ctx context.Context, interval time.Duration, into chan<- reading[T],
	read func(context.Context) (T, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		value, err := read(ctx)
		select {
		case <-ctx.Done():
			return
		case into <- reading[T]{value, err}:
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func accept[T any](s *source[T], r reading[T]) {
	s.err, s.absent = r.err, errors.Is(r.err, nvidiasmi.ErrAbsent)
	if r.err == nil {
		s.value, s.known, s.good = r.value, true, time.Now()
	}
}

// keepOffered keeps what the kubelet offered before it offered nothing: it says nothing of single GPUs then, only that
// the device plugin is away.
func keepOffered(r reading[podresources.State], before *source[podresources.State]) reading[podresources.State] {
	if r.err == nil && len(r.value.Offered) == 0 {
		r.value.Offered = before.value.Offered
	}
	return r
}

// take counts a reading and says in the log when a source begins or ceases to fail.
func (a *Agent) take(ctx context.Context, name string, err error) {
	before, good := a.fromKubelet.err, a.fromKubelet.good
	if name != "kubelet" {
		before, good = a.fromMachine.err, a.fromMachine.good
	}
	a.metrics.read(name, good, err)
	logger := klog.FromContext(ctx)
	switch {
	case err != nil && errors.Is(err, nvidiasmi.ErrAbsent):
		if before == nil {
			logger.Info("There is no nvidia-smi: nothing is published", "reason", err.Error())
		}
	case err != nil && (before == nil || before.Error() != err.Error()):
		logger.Error(err, "Reading failed; what was read last stays published", "source", name, "removedAfter",
			a.intervals.Stale)
	case err == nil && before != nil:
		logger.Info("Reading again", "source", name)
	}
}

// missing says in the log which GPUs the driver no longer lists.
func (a *Agent) missing(ctx context.Context, r reading[hardware]) {
	if r.err != nil || !a.fromMachine.known {
		return
	}
	now := newIdentifier(&r.value)
	for _, gpu := range a.fromMachine.value.gpus {
		if _, ok := now.byUUID[gpu.UUID]; !ok {
			a.metrics.vanished.Inc()
			klog.FromContext(ctx).Error(nil, "A GPU has vanished from the driver's list",
				"uuid", gpu.UUID, "index", gpu.Index, "left", len(r.value.gpus))
		}
	}
}

// wanted are the values that the annotations should have; those in keep stay as they are, all others go.
func (a *Agent) wanted(now time.Time) (values map[string]string, keep map[string]bool, err error) {
	k, m := &a.fromKubelet, &a.fromMachine
	stale := func(good time.Time) bool { return now.Sub(good) >= a.intervals.Stale }
	switch {
	case m.absent || stale(m.good):
		a.metrics.forget()
		a.strangers = 0
		return nil, nil, nil
	case !m.known, !k.known && !stale(k.good):
		keep = map[string]bool{}
		for _, key := range gpuview.AgentKeys {
			keep[key] = true
		}
		return nil, keep, nil
	}
	var state *podresources.State
	if k.known && !stale(k.good) {
		state = &k.value
	}
	p := draw(&m.value, state)
	a.metrics.show(&p)
	a.strangers = len(p.strangers)
	if values, err = p.annotations(&m.value, state != nil); err != nil {
		return nil, nil, err
	}
	if _, ok := values[wellknown.GPUsInUseKey]; ok {
		values[wellknown.GPUsInUseAtKey] = gpuview.EncodeInUseAt(k.good)
	}
	return values, nil, nil
}

// refresh is how old the published time of the last reading may be: a patch a minute of each of thousands of nodes
// would be a load, and readers allow for more.
const refresh = gpuview.InUseLasts / 3

// adapt makes the values fit the node: the published time stays while it is good enough, and a node of HAMi gets no
// GPUs in use, because the kubelet's answer is not true there.
func (a *Agent) adapt(values map[string]string) {
	if a.written.HAMi {
		delete(values, wellknown.GPUsInUseKey)
		delete(values, wellknown.GPUsInUseAtKey)
		return
	}
	if _, ok := values[wellknown.GPUsInUseAtKey]; !ok {
		return
	}
	written := a.written.Annotations[wellknown.GPUsInUseAtKey]
	at, err := gpuview.ParseInUseAt(written)
	if age := a.fromKubelet.good.Sub(at); err == nil && age >= 0 && age < refresh {
		values[wellknown.GPUsInUseAtKey] = written
	}
}

// publish brings the annotations in line with what was read, in one patch, or does nothing.
func (a *Agent) publish(ctx context.Context) error {
	strangers := a.strangers
	values, keep, err := a.wanted(time.Now())
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx)
	if a.strangers > strangers {
		logger.Info("Pods hold devices that belong to no GPU that nvidia-smi lists; they count as in use on any GPU",
			"devices", a.strangers)
	}
	if a.written == nil {
		if a.written, err = a.node.Read(ctx); err != nil {
			a.metrics.writes.WithLabelValues(resultFailed).Inc()
			return fmt.Errorf("reading the node: %w", err)
		}
	}
	a.adapt(values)
	changes := map[string]*string{}
	for _, key := range gpuview.AgentKeys {
		value, want := values[key]
		have, written := a.written.Annotations[key]
		switch {
		case keep[key]:
		case want && (!written || have != value):
			changes[key] = &value
		case !want && written:
			changes[key] = nil
		}
	}
	if len(changes) == 0 {
		return nil
	}
	written, err := a.node.Write(ctx, changes)
	if err != nil {
		a.written = nil // it may have come through
		a.metrics.writes.WithLabelValues(resultFailed).Inc()
		return fmt.Errorf("writing the node's annotations: %w", err)
	}
	a.written = written
	a.metrics.writes.WithLabelValues(resultDone).Inc()
	for key, value := range changes {
		if value == nil {
			logger.Info("Removed annotation", "key", key)
		} else {
			logger.V(2).Info("Wrote annotation", "key", key, "value", *value)
		}
	}
	return nil
}

// pause spaces attempts.
type pause struct {
	backoff wait.Backoff
	waiting bool
}

func newPause() *pause {
	p := &pause{}
	p.reset()
	return p
}

func (p *pause) reset() {
	p.waiting = false
	p.backoff = wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: longestPause}
}

func (p *pause) next() time.Duration {
	p.waiting = true
	return p.backoff.Step()
}
