package work

import (
	"cmp"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// Loss tells what evictions lose.
type Loss struct {
	Limits Limits
	// GPUs are the names by which the profiles know GPUs.
	GPUs  *gpuview.ProfileKeys
	Gangs Gangs
}

// Gangs finds the gangs of pods.
type Gangs interface {
	// ID returns the gang of a pod, the zero ID if it has none.
	ID(*v1.Pod) gang.ID
	// Group returns the PodGroup of a gang, nil if it has none, and PodsOf its members.
	Group(gang.ID) *schedulingv1alpha1.PodGroup
	PodsOf(gang.ID) []*v1.Pod
}

// Moment answers what evictions lose as of one time, such as that of a scheduling cycle. It reads each pod and each
// gang once, however often they are compared: gangs have a thousand members. Several goroutines may ask it.
type Moment struct {
	*Loss
	Now time.Time

	mu    sync.Mutex
	works map[*v1.Pod]*Work
	gangs map[gang.ID]told
}

// told is what a gang says of the work of all members.
type told struct {
	work  Work
	saved []time.Time
}

// At returns what evictions lose at that time.
func (l *Loss) At(now time.Time) *Moment {
	return &Moment{Loss: l, Now: now, works: map[*v1.Pod]*Work{}, gangs: map[gang.ID]told{}}
}

// Work returns what is known of the work of the pod. What the pod says comes before what its PodGroup says, but for
// checkpoints: that of a gang is one, whichever of its members has told.
func (m *Moment) Work(pod *v1.Pod) *Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, known := m.works[pod]
	if !known {
		w = m.read(pod)
		m.works[pod] = w
	}
	return w
}

func (m *Moment) read(pod *v1.Pod) *Work {
	w, _ := Declared(pod)
	if of := m.gang(pod); of != nil {
		for i, own := range w.durations() {
			if *own == 0 {
				*own = *of.work.durations()[i]
			}
		}
		w.Saved = of.saved
	}
	if at, _ := Saved(pod); !at.IsZero() {
		w.Saved = append(w.Saved[:len(w.Saved):len(w.Saved)], at)
	}
	if pod.Spec.NodeName != "" {
		w.Started = Started(pod)
	}
	if w.MilliGPUs = m.milliGPUs(pod); w.MilliGPUs == 0 {
		requests := podview.RequestsNow(pod)
		w.MilliCPUs = requests.Cpu().MilliValue()
	}
	return &w
}

// gang returns what the gang of the pod says, nil if the pod has none.
func (m *Moment) gang(pod *v1.Pod) *told {
	id := m.Gangs.ID(pod)
	if id == (gang.ID{}) {
		return nil
	}
	of, known := m.gangs[id]
	if !known {
		group := m.Gangs.Group(id)
		if group != nil {
			of.work, _ = Declared(group)
		}
		of.saved = m.newest(group, m.Gangs.PodsOf(id))
		m.gangs[id] = of
	}
	return &of
}

// newest returns the last of the times at which the members or their PodGroup say that they have saved their work, of
// those that can be true now; nothing if there is none. Earlier ones make no difference to any member.
func (m *Moment) newest(group *schedulingv1alpha1.PodGroup, members []*v1.Pod) []time.Time {
	var last time.Time
	tell := func(at time.Time) {
		if at.After(last) && Credible(at, m.Now) {
			last = at
		}
	}
	if group != nil {
		at, _ := Saved(group)
		tell(at)
	}
	for _, member := range members {
		at, _ := Saved(member)
		tell(at)
	}
	if last.IsZero() {
		return nil
	}
	return []time.Time{last}
}

// milliGPUs is how much of GPUs the pod asks for, by the names that the first of the profiles knows it by. A part of
// one that depends on its memory counts as the whole.
func (l *Loss) milliGPUs(pod *v1.Pod) int64 {
	for _, keys := range l.GPUs.All() {
		if r, err := keys.PodGPURequest(pod); err == nil && (r.Count > 0 || len(r.Slices) > 0) {
			return int64(cmp.Or(r.TotalMilli(0), r.Count*gpu.WholeMilli))
		}
	}
	return 0
}

// Lost is what the eviction of the pod loses, as Work has it.
func (m *Moment) Lost(pod *v1.Pod) int64 { return m.Work(pod).Lost(m.Now, m.Limits) }

// IsProtected reports whether the pod goes after others of its priority.
func (m *Moment) IsProtected(pod *v1.Pod) bool { return m.Work(pod).IsProtected(m.Now, m.Limits) }

// Describe says what the eviction of the pod loses.
func (m *Moment) Describe(pod *v1.Pod) string { return m.Work(pod).Describe(m.Now, m.Limits) }

// Started is when a pod with a node began to run, or when it was created where that is not told.
func Started(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return pod.CreationTimestamp.Time
}
