package signals

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
)

// Names of the GPU signals in logs and metrics.
const (
	signalUtilisation = "gpu_utilisation"
	signalMemory      = "gpu_memory"
	signalXID         = "gpu_xid"
	signalFaults      = "gpu_faults"
)

// GPUReader reads the live signals of GPUs in the background. A nil reader, which is a signal that is not configured,
// knows nothing.
type GPUReader struct {
	client  *client
	queries queries
	nodes   func() []Node
	report  *reporter

	interval, faultWindow time.Duration
	ages                  sampleAges
	minCoverage           int
	fatalCodes            []int32
	fatal                 map[int]bool

	snapshot atomic.Pointer[GPUSnapshot]

	mu sync.Mutex
	// onCleared are called after rounds in which faults have gone; judged is when faults were last looked at.
	onCleared []func(nodes []string)
	judged    time.Time
}

// OnFaultsCleared has a function called, in the background, after each round after which nodes have fewer faults that
// count than after the round before: the series are gone, or the faults have become too old. A nil reader calls
// nothing.
func (r *GPUReader) OnFaultsCleared(call func(nodes []string)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onCleared = append(r.onCleared, call)
}

// tellCleared compares a round with the one before.
func (r *GPUReader) tellCleared(before, after *GPUSnapshot, now time.Time) {
	r.mu.Lock()
	judged, calls := r.judged, slices.Clone(r.onCleared)
	r.judged = now
	r.mu.Unlock()
	var nodes []string
	for node := range before.faults {
		if lacksAny(before.Faults(node, judged), after.Faults(node, now)) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return
	}
	slices.Sort(nodes)
	for _, call := range calls {
		call(nodes)
	}
}

// lacksAny reports whether a GPU had a fault and has none now.
func lacksAny(before, after []Fault) bool {
	return slices.ContainsFunc(before, func(was Fault) bool {
		return !slices.ContainsFunc(after, func(is Fault) bool { return is.GPUID == was.GPUID })
	})
}

// StartGPU starts to read the signals that args, with defaults set and validated, ask for, until ctx ends; without args
// it returns nil. nodes returns the GPU nodes of the moment; it is called from the background, and not before known
// says that it has heard of all. Calls with the same args and informer factory, as the profiles of one scheduler make
// them, share one reader, with the context and the nodes of the first. It fails when files that args name cannot be
// read; it does not wait for the server.
func StartGPU(ctx context.Context, factory kubeinformers.SharedInformerFactory, args *config.GPUSignals,
	nodes func() []Node, known cache.InformerSynced) (*GPUReader, error) {
	if args == nil {
		return nil, nil
	}
	return share(factory, args, func() (*GPUReader, error) {
		r, err := newGPUReader(klog.FromContext(ctx), args, nodes)
		if err != nil {
			return nil, err
		}
		go func() {
			defer r.client.close()
			everyOnceKnown(ctx, known, r.interval, r.round)
		}()
		return r, nil
	})
}

func newGPUReader(logger klog.Logger, args *config.GPUSignals, nodes func() []Node) (*GPUReader, error) {
	c, err := newClient(&args.Prometheus)
	if err != nil {
		return nil, err
	}
	registerMetrics()
	r := &GPUReader{
		client:      c,
		queries:     newQueries(args.HostLabels, args.Prometheus.MatchLabels),
		nodes:       nodes,
		report:      newReporter(logger, c.server),
		interval:    args.Prometheus.Interval.Duration,
		faultWindow: args.FaultWindow.Duration,
		ages:        sampleAges{full: args.FullWeightAge.Duration, zero: args.ZeroWeightAge.Duration},
		minCoverage: int(*args.MinCoveragePercent),
		fatalCodes:  args.FatalXIDs,
		fatal:       map[int]bool{},
	}
	for _, code := range args.FatalXIDs {
		r.fatal[int(code)] = true
	}
	r.snapshot.Store(r.blank())
	return r, nil
}

func (r *GPUReader) blank() *GPUSnapshot {
	return &GPUSnapshot{ages: r.ages, faultWindow: r.faultWindow}
}

// Snapshot returns what is known now, never nil. It is one atomic load.
func (r *GPUReader) Snapshot() *GPUSnapshot {
	if r == nil {
		return &GPUSnapshot{}
	}
	return r.snapshot.Load()
}

// round asks for all signals at once and publishes what came. A signal whose query failed keeps what it had.
func (r *GPUReader) round(ctx context.Context) {
	nodes := r.nodes()
	from := newOrigin(r.queries.hostLabels, nodes)
	before := r.Snapshot()
	next := *before
	var wg sync.WaitGroup
	var utilisationErr, memoryErr, xidErr, faultsErr error
	wg.Go(func() { utilisationErr = r.readUtilisation(ctx, from, &next.utilisation) })
	wg.Go(func() { memoryErr = r.readMemory(ctx, from, &next.memory) })
	wg.Go(func() { xidErr = r.readXIDs(ctx, from, &next.xidFaults) })
	wg.Go(func() { faultsErr = r.readFaults(ctx, from, &next.otherFaults) })
	wg.Wait()
	if ctx.Err() != nil {
		// The end of the scheduler is no failure of the server.
		return
	}
	now := time.Now()
	utilisation := coverageOf(signalUtilisation, nodes, now, r.ages, next.utilisation,
		func(u Utilisation) time.Time { return u.Time })
	memory := coverageOf(signalMemory, nodes, now, r.ages, next.memory, func(m Memory) time.Time { return m.Time })
	next.utilisationOn = utilisation.enough(r.minCoverage)
	next.memoryOn = memory.enough(r.minCoverage)
	next.faults = mergeFaults(next.xidFaults, next.otherFaults)
	r.snapshot.Store(&next)
	r.tellCleared(before, &next, now)

	utilisation.export(r.client.server)
	memory.export(r.client.server)
	metricEntries.WithLabelValues(r.client.server, signalXID).Set(float64(len(next.xidFaults)))
	metricEntries.WithLabelValues(r.client.server, signalFaults).Set(float64(len(next.otherFaults)))
	r.report.report([]state{
		utilisation.state(r.minCoverage, utilisationErr),
		memory.state(r.minCoverage, memoryErr),
		stateOf(signalXID, xidErr),
		stateOf(signalFaults, faultsErr),
	})
}

func (r *GPUReader) readUtilisation(ctx context.Context, from origin, into *map[string]Utilisation) error {
	asked := time.Now()
	vector, err := r.client.vector(ctx, r.queries.utilisation(), r.ages.zero)
	var dropped drops
	if err == nil {
		*into, dropped = decodeUtilisation(vector, asked, from)
	}
	account(r.client.server, signalUtilisation, time.Since(asked), dropped, err)
	return err
}

func (r *GPUReader) readMemory(ctx context.Context, from origin, into *map[string]Memory) error {
	asked := time.Now()
	vector, err := r.client.vector(ctx, r.queries.memory(), r.ages.zero)
	var dropped drops
	if err == nil {
		*into, dropped = decodeMemory(vector, asked, from)
	}
	account(r.client.server, signalMemory, time.Since(asked), dropped, err)
	return err
}

func (r *GPUReader) readXIDs(ctx context.Context, from origin, into *faultsByNode) error {
	if len(r.fatalCodes) == 0 {
		return nil
	}
	asked := time.Now()
	matrix, err := r.client.matrix(ctx, r.queries.xidHistory(r.faultWindow), r.ages.zero)
	var dropped drops
	if err == nil {
		*into, dropped = xidFaults(matrix, asked, r.fatal, from)
	}
	account(r.client.server, signalXID, time.Since(asked), dropped, err)
	return err
}

func (r *GPUReader) readFaults(ctx context.Context, from origin, into *faultsByNode) error {
	asked := time.Now()
	vector, err := r.client.vector(ctx, r.queries.faults(r.fatalCodes, r.faultWindow), r.ages.zero)
	var dropped drops
	if err == nil {
		*into, dropped = decodeFaults(vector, asked, r.fatal, from)
	}
	account(r.client.server, signalFaults, time.Since(asked), dropped, err)
	return err
}
