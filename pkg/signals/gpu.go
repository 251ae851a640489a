package signals

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/apis/config"
)

// Names of the GPU signals in logs and metrics.
const (
	signalUse    = "gpu_use"
	signalFaults = "gpu_faults"
)

// minCoveredPercent of the GPU nodes must have a sample that counts, otherwise use counts for no node: a node must be
// neither favored nor avoided because it is measured.
const minCoveredPercent = 80

// GPUSnapshot is what was known about GPUs after one round of queries. It is immutable. The zero value knows nothing.
type GPUSnapshot struct {
	maxAge, faultWindow time.Duration
	use                 map[string]Use
	// covered reports that enough nodes have a sample that counts.
	covered bool
	faults  map[string][]Fault
}

// Use is how the GPUs of a node were used.
type Use struct {
	// Time of the oldest sample, by the scheduler's clock: pods that were bound later are not included.
	Time time.Time
	// MeanMilli is the mean utilization of GPUs in thousandths.
	MeanMilli int
	// GPUs in order of index, then UUID. A GPU whose utilization is not measured is missing.
	GPUs []GPUUse
}

// GPUUse is how one GPU was used.
type GPUUse struct {
	GPUID
	// Milli, from 0 to 1000, is the share of time in which the GPU's engine was active (DCGM_FI_PROF_GR_ENGINE_ACTIVE)
	// or, where that is not measured, in which at least one kernel ran (DCGM_FI_DEV_GPU_UTIL).
	Milli int
	// UsedMiB and FreeMiB are of the framebuffer, both 0 where one is not known.
	UsedMiB, FreeMiB int64
}

// Fault is a reason to keep new work off a GPU.
type Fault struct {
	GPUID
	// XID is the fatal code, 0 for a failed row remap.
	XID int
	// Time at which the fault began or, for a failed row remap, was last seen.
	Time time.Time
}

// Use returns how the GPUs of a node are used. ok is false if the node must be treated as any other: it has no sample,
// the sample is too old at the time now, or too few nodes have one.
func (s *GPUSnapshot) Use(node string, now time.Time) (use Use, ok bool) {
	use, ok = s.use[node]
	if !ok || !s.covered || now.Sub(use.Time) >= s.maxAge {
		return Use{}, false
	}
	return use, true
}

// Faults returns the faults of a node that still count at the time now, in order of index and UUID. A fault counts for
// the configured window, however few nodes are measured.
func (s *GPUSnapshot) Faults(node string, now time.Time) []Fault {
	var active []Fault
	for _, fault := range s.faults[node] {
		if now.Sub(fault.Time) < s.faultWindow {
			active = append(active, fault)
		}
	}
	return active
}

// CountFaults returns how many faults count at the time now, by node; nodes without any are left out.
func (s *GPUSnapshot) CountFaults(now time.Time) map[string]int {
	counts := map[string]int{}
	for node := range s.faults {
		if n := len(s.Faults(node, now)); n > 0 {
			counts[node] = n
		}
	}
	return counts
}

// coverage returns how many of the nodes have a sample that counts, and the time of the newest, zero if there is none.
func (s *GPUSnapshot) coverage(nodes []Node, now time.Time) (covered int, newest time.Time) {
	for _, node := range nodes {
		use, ok := s.use[node.Name]
		if ok && now.Sub(use.Time) < s.maxAge {
			covered++
		}
		if use.Time.After(newest) {
			newest = use.Time
		}
	}
	return covered, newest
}

// StartGPU starts to read the signals that args, with defaults set and validated, ask for, until ctx ends; without args
// it returns nil. nodes returns the current GPU nodes; it is called from the background, and not before known reports
// that all nodes are known. Calls with the same args and informer factory, as the profiles of one scheduler make them,
// share one reader, with the context and the nodes of the first. It fails when files that args name cannot be read; it
// does not wait for the server.
func StartGPU(ctx context.Context, factory kubeinformers.SharedInformerFactory, args *config.GPUSignals,
	nodes func() []Node, known cache.InformerSynced) (*Reader[GPUSnapshot], error) {
	if args == nil {
		return nil, nil
	}
	return start(ctx, factory, args, &args.Prometheus, known, firstGPUSnapshot(args), readGPUs(args, nodes))
}

func firstGPUSnapshot(args *config.GPUSignals) GPUSnapshot {
	return GPUSnapshot{maxAge: args.MaxAge.Duration, faultWindow: args.FaultWindow.Duration}
}

func readGPUs(args *config.GPUSignals, nodesNow func() []Node) readFunc[GPUSnapshot] {
	use := fill(queryUse, args.HostLabels, &args.Prometheus, 0)
	faults := fill(queryFaults, args.HostLabels, &args.Prometheus, args.FaultWindow.Duration)
	return func(ctx context.Context, r *round, next *GPUSnapshot) {
		nodes := nodesNow()
		hosts := newOrigin(args.HostLabels, nodes)
		r.ask(ctx, signalUse, use, model.ValVector, next.maxAge, func(answer model.Value, asked time.Time) (dropped int) {
			next.use, dropped = decodeUse(answer.(model.Vector), asked, hosts)
			return dropped
		})
		covered, newest := next.coverage(nodes, time.Now())
		// A cluster without GPU nodes has nothing to weigh.
		next.covered = len(nodes) > 0 && covered*100 >= minCoveredPercent*len(nodes)
		r.uncovered, r.covered, r.nodes = len(nodes) > 0 && !next.covered, covered, len(nodes)
		r.knows(signalUse, len(next.use), newest)
		r.ask(ctx, signalFaults, faults, model.ValMatrix, next.maxAge,
			func(answer model.Value, asked time.Time) (dropped int) {
				next.faults, dropped = decodeFaults(answer.(model.Matrix), asked, args.FatalXIDs, hosts)
				return dropped
			})
		r.knows(signalFaults, len(next.faults), time.Time{})
	}
}
