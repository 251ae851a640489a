package explain

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang/eviction"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/podview"
)

// Loss is what the eviction of a pod costs.
type Loss struct {
	Pod      string `json:"pod"`
	Priority int32  `json:"priority"`
	// GPUMinutes are the minutes of a GPU that are lost; 100 CPUs count as one GPU for pods without GPUs.
	GPUMinutes float64 `json:"gpuMinutes"`
	// Protected says that the pod has just started, and is evicted after others of its priority.
	Protected bool `json:"protected,omitempty"`
	// Why says what is lost.
	Why string `json:"why"`
}

// mostSpared is how many pods are shown that the scheduler did not choose.
const mostSpared = 3

// compareLosses adds what the victims lose, and what the cheapest other pods would lose.
func compareLosses(loss *preempt.Loss, p *Preemption, infos []fwk.NodeInfo, preemptor *v1.Pod, now time.Time) {
	type costly struct {
		Loss
		cost eviction.Cost
	}
	var spared []costly
	moment := loss.At(now)
	for _, info := range infos {
		for _, on := range info.GetPods() {
			pod := on.GetPod()
			priority := corev1helpers.PodPriority(pod)
			if priority >= corev1helpers.PodPriority(preemptor) || podview.BelongsToNode(pod) || pod.DeletionTimestamp != nil {
				continue
			}
			v := eviction.Victim{Priority: priority, Lost: moment.Lost(pod), Protected: moment.IsProtected(pod)}
			l := Loss{Pod: pod.Namespace + "/" + pod.Name, Priority: priority, GPUMinutes: float64(v.Lost) / 1000,
				Protected: v.Protected, Why: moment.Describe(pod)}
			if slices.Contains(p.Victims, l.Pod) {
				p.Losses = append(p.Losses, l)
				continue
			}
			var cost eviction.Cost
			cost.Add(&v)
			spared = append(spared, costly{l, cost})
		}
	}
	slices.SortStableFunc(spared, func(a, b costly) int { return a.cost.Compare(b.cost) })
	for _, s := range spared[:min(len(spared), mostSpared)] {
		p.Spared = append(p.Spared, s.Loss)
	}
}

// losses prints what the victims lose, and what others would lose.
func (p *page) losses(e *Preemption) {
	if len(e.Losses) == 0 {
		return
	}
	p.line("\nevicted, as they lose the least that makes room:")
	p.lossRows(e.Losses)
	if len(e.Spared) > 0 {
		p.line("spared, the cheapest first:")
		p.lossRows(e.Spared)
	}
}

func (p *page) lossRows(losses []Loss) {
	for _, l := range losses {
		protected := ""
		if l.Protected {
			protected = ", protected"
		}
		p.line("  %s (priority %d%s): %s", l.Pod, l.Priority, protected, l.Why)
	}
}
