package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// recorder measures a replay.
type recorder struct {
	c *cluster

	arrivedMilli int64
	arrivedPods  int
	preemptions  int
	lostGPUHours float64
	podWaits     []time.Duration
	waits        map[string]*replayed.Wait
	gangWaits    []time.Duration
	completions  []time.Duration
	lastNode     map[types.NamespacedName]string
	starts       map[string]float64

	// In arrival order: the sum and number of the allocation percentages while the arrived demand rounds to 100%.
	fullSum   float64
	fullCount int
	eight     replayed.Share
	every     int
	offers    int

	gangsStarted int

	// In virtual time: the sums now, and at the last progress of the work.
	window      measuredWindow
	since       time.Time
	interval    time.Duration
	nextSample  time.Time
	now, marked integrals
	strandedNow int64

	samples []replayed.Sample
}

// samplesWanted bounds the number of samples of a replay.
const samplesWanted = 300

func newRecorder(c *cluster) *recorder {
	r := &recorder{c: c, window: newWindow(c), since: c.start, nextSample: c.start,
		lastNode: map[types.NamespacedName]string{}, starts: map[string]float64{}, waits: map[string]*replayed.Wait{}}
	pods := 0
	for i := range c.jobs {
		pods += c.jobs[i].Pods
	}
	// Pods of a dump count when they are bound: all of them exist before the start.
	c.options.Progress.Await(pods + c.unbound)
	r.every = max(1, len(c.jobs)/samplesWanted)
	span := patience
	for i := range c.jobs {
		span = max(span, c.jobs[i].Arrival+c.jobs[i].Duration)
	}
	if c.options.Horizon > 0 {
		span = min(span, c.options.Horizon)
	}
	r.interval = max(span/samplesWanted, time.Second)
	return r
}

// arrived counts a job's demand.
func (r *recorder) arrived(j *trace.Job) {
	r.arrivedMilli += j.MilliGPU() * int64(j.Pods)
	r.arrivedPods += j.Pods
}

// shortWait is how long a pod may wait although a node is free for it.
const shortWait = time.Second

// waited counts the wait of a pod for its first node under each of its reasons.
func (r *recorder) waited(wait time.Duration, reasons []string) {
	r.podWaits = append(r.podWaits, wait)
	if wait < shortWait {
		return
	}
	for _, reason := range reasons {
		w := r.waits[reason]
		if w == nil {
			w = &replayed.Wait{Reason: reason}
			r.waits[reason] = w
		}
		w.Pods++
		w.Seconds += wait.Seconds()
	}
}

// waitReasons are the waits by reason, the longest first.
func (r *recorder) waitReasons() []replayed.Wait {
	list := make([]replayed.Wait, 0, len(r.waits))
	for _, w := range r.waits {
		list = append(list, replayed.Wait{Reason: w.Reason, Pods: w.Pods, Seconds: round(w.Seconds)})
	}
	slices.SortFunc(list, func(a, b replayed.Wait) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// offered is called in arrival order when the scheduler has decided on a job.
func (r *recorder) offered(j *trace.Job) {
	if j.GPUs == 8 {
		r.eight.Of += j.Pods
		for i := range j.Pods {
			if p := r.c.pods[podKey(j, i)]; p == nil || p.node == "" {
				r.eight.Part++
			}
		}
	}
	arrived, allocated := r.percent(r.arrivedMilli), r.percent(r.c.ledger.allocatedMilli)
	if math.Round(arrived) == 100 {
		r.fullSum += allocated
		r.fullCount++
	}
	r.offers++
	if r.offers%r.every == 0 || r.offers == len(r.c.jobs) {
		r.sample(time.Now())
	}
}

func (r *recorder) percent(milli int64) float64 {
	if r.c.ledger.capacityMilli == 0 {
		return 0
	}
	return 100 * float64(milli) / float64(r.c.ledger.capacityMilli)
}

// advance accounts for the time since the last change.
func (r *recorder) advance(now time.Time) {
	if r.c.options.Mode != replayed.VirtualTime {
		return
	}
	for !r.nextSample.After(now) {
		r.sample(r.nextSample)
		r.nextSample = r.nextSample.Add(r.interval)
	}
	r.now.add(r.window, r.since, now, r.c.ledger, r.strandedNow)
	r.since = now
}

// mark keeps the sums of this moment.
func (r *recorder) mark() { r.marked = r.now }

func (r *recorder) sample(at time.Time) {
	l := r.c.ledger
	r.strandedNow = l.strandedMilli()
	r.samples = append(r.samples, replayed.Sample{
		Seconds:             at.Sub(r.c.start).Round(time.Microsecond).Seconds(),
		ArrivedPercent:      round(r.percent(r.arrivedMilli)),
		AllocatedPercent:    round(r.percent(l.allocatedMilli)),
		StrandedPercent:     round(r.percent(r.strandedNow)),
		MicroDollarsPerHour: l.microDollars,
		NodesInUse:          l.nodesInUse,
		Pending:             r.c.unbound,
	})
}

// result fills in the measured values.
func (r *recorder) result(out *replayed.Result) error {
	c, l := r.c, r.c.ledger
	now := time.Now()
	r.advance(now)
	if len(r.samples) == 0 || c.options.Mode == replayed.VirtualTime {
		r.sample(now)
	}
	out.Nodes, out.CapacityMilli, out.NodesUnpriced = len(l.order), l.capacityMilli, l.unpriced
	out.Jobs, out.Pods = len(c.jobs), r.arrivedPods+c.adopted
	out.Pending = c.unbound
	out.Refused8 = r.eight
	out.SharePods, out.Gangs, out.GangsStarted = c.sharePods, len(c.gangs), r.gangsStarted
	for _, n := range l.order {
		out.PricesMicroDollars += n.microDollars
	}
	r.endState(out)
	if err := r.means(out, now); err != nil {
		return err
	}
	out.IdleMilli = l.capacityMilli - out.AllocatedMilli
	out.PodWait, out.GangWait, out.JobCompletion = summarize(r.podWaits), summarize(r.gangWaits), summarize(r.completions)
	c.mu.Lock()
	out.ToldStartError = summarize(c.starts.errors)
	c.mu.Unlock()
	out.JobsCompleted, out.Preemptions = len(r.completions), r.preemptions
	out.LostGPUHours = r.lostGPUHours
	out.VirtualSeconds = now.Sub(c.start).Seconds()
	out.Samples, out.Starts = r.samples, r.starts
	out.PendingByReason, out.WaitByReason = c.pendingReasons(), r.waitReasons()
	out.Notes = append(out.Notes, c.notes()...)
	out.Placements = make(map[string]string, len(r.lastNode)+len(c.pods))
	for key, node := range r.lastNode {
		out.Placements[key.String()] = node
	}
	for key, p := range c.pods {
		out.Placements[key.String()] = p.node
	}
	for _, node := range out.Placements {
		if node != "" {
			out.Placed++
		}
	}
	for _, p := range c.pods {
		if p.gang != nil && p.allocation != nil && !p.gang.canRun {
			out.Incomplete++
		}
	}
	out.Placed -= out.Incomplete
	return nil
}

// pendingReasons counts the pods without a node by their main reason.
func (c *cluster) pendingReasons() []replayed.Reason {
	counts := map[string]int{}
	for _, obj := range c.world.API.List(podResource) {
		pod := obj.(*v1.Pod)
		if pod.Spec.NodeName == "" {
			counts[c.failures.mainReason(pod)]++
		}
	}
	reasons := make([]replayed.Reason, 0, len(counts))
	for reason, pods := range counts {
		reasons = append(reasons, replayed.Reason{Reason: reason, Pods: pods})
	}
	slices.SortFunc(reasons, func(a, b replayed.Reason) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Reason, b.Reason))
	})
	return reasons
}

func summarize(waits []time.Duration) replayed.Waits {
	if len(waits) == 0 {
		return replayed.Waits{}
	}
	sorted := slices.Clone(waits)
	slices.Sort(sorted)
	sum := 0.0
	for _, w := range sorted {
		sum += w.Seconds()
	}
	// The nearest-rank percentile: the smallest wait that at least that share of the waits does not exceed.
	at := func(percent int) float64 { return round(sorted[(len(sorted)*percent+99)/100-1].Seconds()) }
	return replayed.Waits{Count: len(sorted), Mean: round(sum / float64(len(sorted))), P50: at(50), P95: at(95),
		Max: at(100)}
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
