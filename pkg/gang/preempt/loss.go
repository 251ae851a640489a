package preempt

import (
	"cmp"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// Loss computes what evictions lose.
type Loss struct {
	Limits work.Limits
	// GPUs are the keys of GPUs by profile.
	GPUs    *gpuview.ProfileKeys
	Members *members.Directory
}

// Moment computes what evictions lose at one time, such as that of a scheduling cycle. It reads each pod and each gang
// only once, because gangs may have a thousand members. It is safe for concurrent use.
type Moment struct {
	*Loss
	Now time.Time

	mu    sync.Mutex
	works map[*v1.Pod]*work.Work
	gangs map[gang.ID]gangWork
}

// gangWork is what a gang declares for all members.
type gangWork struct {
	work  work.Work
	saved []time.Time
}

// At returns the Moment of that time.
func (l *Loss) At(now time.Time) *Moment {
	return &Moment{Loss: l, Now: now, works: map[*v1.Pod]*work.Work{}, gangs: map[gang.ID]gangWork{}}
}

// Work returns the work of the pod. Annotations of the pod take precedence over those of its PodGroup, except
// checkpoints: a checkpoint of any member counts for the whole gang.
func (m *Moment) Work(pod *v1.Pod) *work.Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, known := m.works[pod]
	if !known {
		w = m.read(pod)
		m.works[pod] = w
	}
	return w
}

func (m *Moment) read(pod *v1.Pod) *work.Work {
	w, _ := work.Declared(pod)
	if of := m.gang(pod); of != nil {
		w.Complete(&of.work)
		w.Saved = of.saved
	}
	if at, _ := work.Saved(pod); !at.IsZero() {
		w.Saved = append(w.Saved[:len(w.Saved):len(w.Saved)], at)
	}
	if pod.Spec.NodeName != "" {
		w.Started = work.Started(pod)
	}
	if w.MilliGPUs = m.milliGPUs(pod); w.MilliGPUs == 0 {
		requests := podview.RequestsNow(pod)
		w.MilliCPUs = requests.Cpu().MilliValue()
	}
	return &w
}

// gang returns what the gang of the pod declares, nil if the pod has none.
func (m *Moment) gang(pod *v1.Pod) *gangWork {
	id := m.Members.ID(pod)
	if id == (gang.ID{}) {
		return nil
	}
	of, known := m.gangs[id]
	if !known {
		group := m.Members.Group(id)
		if group != nil {
			of.work, _ = work.Declared(group)
		}
		of.saved = m.newest(group, m.Members.PodsOf(id))
		m.gangs[id] = of
	}
	return &of
}

// newest returns the latest credible checkpoint of the members or their PodGroup, nil if there is none.
func (m *Moment) newest(group *schedulingv1alpha1.PodGroup, pods []*v1.Pod) []time.Time {
	var last time.Time
	consider := func(at time.Time) {
		if at.After(last) && work.Credible(at, m.Now) {
			last = at
		}
	}
	if group != nil {
		at, _ := work.Saved(group)
		consider(at)
	}
	for _, member := range pods {
		at, _ := work.Saved(member)
		consider(at)
	}
	if last.IsZero() {
		return nil
	}
	return []time.Time{last}
}

// milliGPUs returns the GPUs that the pod requests, in thousandths, by the keys of the first profile that know any. A
// share by memory counts as a whole GPU.
func (l *Loss) milliGPUs(pod *v1.Pod) int64 {
	for _, keys := range l.GPUs.All() {
		if r, err := keys.PodGPURequest(pod); err == nil && (r.Count > 0 || len(r.Slices) > 0) {
			return int64(cmp.Or(r.TotalMilli(0), r.Count*gpu.WholeMilli))
		}
	}
	return 0
}

// Lost is Work.Lost of the pod.
func (m *Moment) Lost(pod *v1.Pod) int64 { return m.Work(pod).Lost(m.Now, m.Limits) }

// IsProtected reports whether the pod is evicted after others of its priority.
func (m *Moment) IsProtected(pod *v1.Pod) bool { return m.Work(pod).IsProtected(m.Now, m.Limits) }

// Describe is Work.Describe of the pod.
func (m *Moment) Describe(pod *v1.Pod) string { return m.Work(pod).Describe(m.Now, m.Limits) }
