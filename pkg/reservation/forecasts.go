package reservation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/runview"
)

const (
	// soonest and latest bound after what time a forecast is made again; for pods that have run for long it is a part of
	// their age.
	soonest, latest = 10 * time.Second, 2 * time.Minute
	// grace is how long pods that terminate are expected to take.
	grace = 30 * time.Second
	// mostCounted bounds for how many gangs it is known that their run has been noted.
	mostCounted = 1024
)

// Forecasts owns what was learned of run times, and knows when pods end. Informers tell it of pods that have gone;
// cycles and the loop ask it.
type Forecasts struct {
	// GPUs counts the GPUs that a pod asks for, and Group returns its PodGroup, nil without one.
	GPUs  func(*v1.Pod) int
	Group func(*v1.Pod) *schedulingv1alpha1.PodGroup
	// Gang returns the gang of the pod, the zero ID without one.
	Gang func(*v1.Pod) gang.ID
	// Limit returns after what time the controller of the pod ends it, 0 if it does not or that is not known.
	Limit func(*v1.Pod) time.Duration
	// Leads reports whether this scheduler leads: standbys learn, too, and count nothing.
	Leads func() bool

	mu   sync.Mutex
	book *runtimes.Book
	pods map[apitypes.UID]*podForecast
	// declaring holds the pods that say how long they run.
	declaring map[apitypes.UID]bool
	// entered holds the pods that this scheduler has let into capacity that is kept for a gang.
	entered map[apitypes.UID]bool
	// counted holds when a run of a gang was last noted. Only the last mostCounted are remembered.
	counted map[gangRun]time.Time
}

// gangRun is what counts once for all members of a gang that are alike.
type gangRun struct {
	gang     gang.ID
	class    runtimes.Class
	outlived bool
}

// podForecast is a forecast that was made at some time, and when to make the next one.
type podForecast struct {
	left     runtimes.Forecast
	at, next time.Time
	bound    bool
	// outlived is set once it is noted that the pod has outlived what it declared.
	outlived bool
}

// NewForecasts returns forecasts that nothing has been learned for.
func NewForecasts() *Forecasts {
	return &Forecasts{book: runtimes.NewBook(), pods: map[apitypes.UID]*podForecast{}, declaring: map[apitypes.UID]bool{},
		entered: map[apitypes.UID]bool{}, counted: map[gangRun]time.Time{}, Leads: func() bool { return false },
		Gang:  func(*v1.Pod) gang.ID { return gang.ID{} },
		Limit: func(*v1.Pod) time.Duration { return 0 }}
}

// Informed reports whether anything is known of run times: enough pods have ended, or there are some that declare
// theirs.
func (f *Forecasts) Informed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.declaring) > 0 || f.book.Knows()
}

// See takes note of a pod that is there.
func (f *Forecasts) See(pod *v1.Pod) {
	claim := f.claimOf(pod)
	f.mu.Lock()
	defer f.mu.Unlock()
	if claim.Expected > 0 || claim.Limit > 0 {
		f.declaring[pod.UID] = true
	} else {
		delete(f.declaring, pod.UID)
	}
}

// Enter takes note of a pod that is let into capacity that is kept for a gang.
func (f *Forecasts) Enter(pod *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entered[pod.UID] = true
}

// Lose learns from a pod that has gone, if it ended on its own.
func (f *Forecasts) Lose(pod *v1.Pod, now time.Time) {
	claim, class, of := f.claimOf(pod), f.classOf(pod), f.Gang(pod)
	began, ran := runview.Started(pod)
	f.mu.Lock()
	defer f.mu.Unlock()
	entered := f.entered[pod.UID]
	delete(f.entered, pod.UID)
	delete(f.pods, pod.UID)
	delete(f.declaring, pod.UID)
	if ran && class.GPUs > 0 && f.Leads() {
		gpuTime.WithLabelValues(strconv.FormatBool(entered)).Add(float64(class.GPUs) * max(now.Sub(began).Seconds(), 0))
	}
	if ran && runview.EndedAlone(pod) && now.After(began) && f.first(gangRun{of, class, false}, began, now) {
		f.book.Ended(&class, &claim, now.Sub(began))
	}
}

// Left forecasts what is left of a pod that runs, or the run of one that waits.
func (f *Forecasts) Left(pod *v1.Pod, now time.Time) runtimes.Forecast {
	if pod.DeletionTimestamp != nil {
		return runtimes.Certain(grace)
	}
	f.mu.Lock()
	known := f.pods[pod.UID]
	if known != nil && now.Before(known.next) && known.bound == (pod.Spec.NodeName != "") {
		defer f.mu.Unlock()
		return known.from(now)
	}
	f.mu.Unlock()
	claim, class, of := f.claimOf(pod), f.classOf(pod), f.Gang(pod)
	next := &podForecast{at: now, bound: pod.Spec.NodeName != ""}
	var age time.Duration
	if began, ran := runview.Started(pod); ran {
		age = max(now.Sub(began), 0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known != nil {
		next.outlived = known.outlived
	}
	if !next.outlived && claim.Outlived(age) {
		next.outlived = true
		if f.first(gangRun{of, class, true}, now.Add(-age), now) {
			f.book.NoteOutlived(&class)
		}
	}
	source := f.book.Of(&class, &claim)
	next.left = source.Left(age)
	next.next = now.Add(min(max(soonest, next.left.At(0.5)/8), max(latest, age/10)))
	f.pods[pod.UID] = next
	return next.left
}

// first reports whether a pod that began at a time is the first of its gang from which this is learned. The members of
// a gang end together: if each of them counted, one large gang would be all that is known of its class. A pod that
// began after the last note is of the next run of the gang. The caller holds mu.
func (f *Forecasts) first(run gangRun, began, now time.Time) bool {
	if run.gang == (gang.ID{}) {
		return true
	}
	if noted, known := f.counted[run]; known && !began.After(noted) {
		return false
	}
	if len(f.counted) >= mostCounted {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(f.counted)), func(a, b gangRun) int {
			return f.counted[a].Compare(f.counted[b])
		})
		delete(f.counted, oldest)
	}
	f.counted[run] = now
	return true
}

// Dump returns the book as it is to be written, and how much was learned.
func (f *Forecasts) Dump() (book []byte, learned uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if book, err = f.book.MarshalBinary(); err != nil {
		return nil, 0, fmt.Errorf("encoding the book: %w", err)
	}
	return book, f.book.Learned(), nil
}

// Load replaces what was learned by what was written. After an error it is as before.
func (f *Forecasts) Load(book []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.book.UnmarshalBinary(book); err != nil {
		return fmt.Errorf("decoding the book: %w", err)
	}
	return nil
}

// Signature is equal for pods whose run times are forecast alike.
func (f *Forecasts) Signature(pod *v1.Pod) []any { return []any{f.claimOf(pod), f.classOf(pod)} }

// from is the forecast at a later time.
func (p *podForecast) from(now time.Time) runtimes.Forecast {
	if !p.bound {
		return p.left
	}
	return p.left.Later(now.Sub(p.at))
}

func (f *Forecasts) claimOf(pod *v1.Pod) runtimes.Claim {
	var group metav1.Object // a nil PodGroup would be none
	if pg := f.Group(pod); pg != nil {
		group = pg
	}
	claim := runview.ClaimOf(pod, group)
	claim.EndBy(f.Limit(pod))
	return claim
}

func (f *Forecasts) classOf(pod *v1.Pod) runtimes.Class { return runview.ClassOf(pod, f.GPUs(pod)) }
