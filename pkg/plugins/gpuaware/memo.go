package gpuaware

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/lru"

	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/gpu"
)

const (
	// maxMemos bounds how many kinds of pods are remembered, and with 16 bytes a node for each the memory.
	maxMemos = 256
	// maxRefusals bounds the reasons that are remembered; numbers of GPUs make a few hundred.
	maxRefusals = 4096
)

// memo is what was found of each node, by its index, for one kind of pod. Nodes change one at a time and a cluster runs
// few kinds of pods, so nearly all that a cycle asks was found before. A memo is safe for concurrent use; nil remembers
// nothing.
type memo []cell

// cell is a finding about one state of one node.
type cell struct {
	// generation is that of the state, 0 for none and busy while a writer is at it.
	generation, finding atomic.Int64
}

const busy = -1

// load returns what was found for that state of the node.
func (m memo) load(index int, generation int64) (finding int64, ok bool) {
	if uint(index) >= uint(len(m)) || m[index].generation.Load() != generation {
		return 0, false
	}
	finding = m[index].finding.Load()
	// A writer that has come in between may have changed the finding.
	return finding, m[index].generation.Load() == generation
}

// store remembers a finding. Of two writers to one cell the later gives way: the finding will be asked for again.
func (m memo) store(index int, generation, finding int64) {
	if uint(index) >= uint(len(m)) {
		return
	}
	c := &m[index]
	old := c.generation.Load()
	if old == busy || !c.generation.CompareAndSwap(old, busy) {
		return
	}
	c.finding.Store(finding)
	c.generation.Store(generation)
}

// memoKey tells apart kinds of pods.
type memoKey struct {
	requestKey
	// cpuMilli is 0 for what does not depend on it, as all but scores.
	cpuMilli int64
	// claims is the shape of what has to be allocated.
	claims string
	scores bool
}

// requestKey has all of a request but its CPU.
type requestKey struct {
	resource                    string
	count, milli                int
	shareMemMiB, shareMemMilli  int
	byAgent, shared             bool
	slices, models              string
	minMemMiB                   int
	interconnect                gpu.Interconnect
	sharing                     gpu.Sharing
	needsGPUNode, avoidsGPUNode bool
	minNodeCPUMilli             int64
}

func keyOf(r *gpu.Request) requestKey {
	k := requestKey{
		resource: r.Resource, count: r.Count, milli: r.Milli, shareMemMiB: r.ShareMemMiB, shareMemMilli: r.ShareMemMilli,
		byAgent: r.ByAgent, shared: r.Shared, minMemMiB: r.MinMemMiB, interconnect: r.Interconnect, sharing: r.Sharing,
		needsGPUNode: r.NeedsGPUNode, avoidsGPUNode: r.AvoidsGPUNode, minNodeCPUMilli: r.MinNodeCPUMilli,
	}
	if len(r.Slices) > 0 {
		k.slices = fmt.Sprintf("%#v", r.Slices)
	}
	if len(r.Models) > 0 {
		k.models = fmt.Sprintf("%q", r.Models)
	}
	return k
}

// memos are those of the kinds of pods seen last.
type memos struct {
	byKey *lru.Cache
	// last are the memos that were given out last, for findings of filters and of scores: most pods are of the kind of
	// the one before, and need not be looked up.
	last *[2]atomic.Pointer[keyed]
}

// keyed is a memo with its key.
type keyed struct {
	memoKey
	dated
}

// dated is a memo and the number of the mix that it was made with, 0 for what does not depend on the mix.
type dated struct {
	memo    memo
	changes *changes
	learnt  uint64
}

func newMemos() memos { return memos{lru.New(maxMemos), &[2]atomic.Pointer[keyed]{}} }

// serves reports whether the memo is made with that mix and has room for the nodes and for more changes.
func (d *dated) serves(learnt uint64, indices int) bool {
	return d.learnt == learnt && len(d.memo) >= indices && !d.changes.full()
}

// of returns the memo of a kind of pod, made with that mix, on nodes of fewer indices than that; nil for the first pod
// of its kind, which may be the only one.
func (m memos) of(key memoKey, learnt uint64, indices int) (memo, *changes) {
	last := &m.last[0]
	if key.scores {
		last = &m.last[1]
	}
	if have := last.Load(); have != nil && have.memoKey == key && have.serves(learnt, indices) {
		return have.memo, have.changes
	}
	known, seen := m.byKey.Get(key)
	if !seen {
		m.byKey.Add(key, dated{})
		return nil, nil
	}
	have := known.(dated)
	if !have.serves(learnt, indices) {
		have = dated{memo: make(memo, indices+indices/4), learnt: learnt}
		if key.scores {
			have.changes = newChanges()
		}
		m.byKey.Add(key, have)
	}
	last.Store(&keyed{key, have})
	return have.memo, have.changes
}

// recall gives the state of a cycle the memos of its kind of pod. Where more counts than the pod, the mix and the state
// of the node, it has none: siblings on other nodes, devices that several nodes reach, and what is measured change by
// themselves.
func (p *Plugin) recall(s *podState, learnt uint64) {
	if s.siblings != nil || s.live.snapshot != nil {
		return
	}
	shape := ""
	if s.claims != nil {
		if shape = s.claims.pod.Shape(); shape == "" || !s.claims.state.Alone() {
			return
		}
	}
	indices := p.cluster.views.Indices()
	kind := memoKey{requestKey: keyOf(&s.request.Request), claims: shape}
	s.fits, _ = p.memos.of(kind, 0, indices)
	kind.cpuMilli, kind.scores = s.request.CPUMilli, true
	s.scores, s.changes = p.memos.of(kind, learnt, indices)
}

// refusal is a reason as the framework is told it.
type refusal struct {
	code   fwk.Code
	reason error
}

// refusals number the reasons for which nodes were refused, from 1 on; 0 is no reason. Each is worded once: in a full
// cluster every node refuses every pod.
type refusals struct {
	mu      sync.Mutex
	numbers map[gpu.Reason]int64
	known   atomic.Pointer[[]refusal]
}

func newRefusals() *refusals {
	r := &refusals{numbers: map[gpu.Reason]int64{{}: 0}}
	r.known.Store(&[]refusal{{code: fwk.Success}})
	return r
}

// number returns the reason's number, and false when there are too many.
func (r *refusals) number(reason gpu.Reason) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.numbers[reason]; ok {
		return n, true
	}
	known := *r.known.Load()
	if len(known) >= maxRefusals {
		return 0, false
	}
	// A copy: those who read it hold no lock.
	known = append(slices.Clip(known), newRefusal(reason))
	n := int64(len(known) - 1)
	r.numbers[reason] = n
	r.known.Store(&known)
	return n, true
}

func newRefusal(reason gpu.Reason) refusal {
	code := fwk.UnschedulableAndUnresolvable
	if reason.Evictable() {
		code = fwk.Unschedulable
	}
	return refusal{code, cycles.ReasonError(reason)}
}

// status is the answer of a filter. Each is the framework's own, to write on; only the reason is shared.
func (r refusal) status() *fwk.Status {
	if r.code == fwk.Success {
		return nil
	}
	return fwk.NewStatus(r.code).WithError(r.reason)
}

// status returns that of the reason with that number.
func (r *refusals) status(number int64) *fwk.Status { return (*r.known.Load())[number].status() }
