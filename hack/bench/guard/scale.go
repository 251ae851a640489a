package guard

import (
	"context"
	"fmt"
	"io"
	"runtime"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

const (
	// Of the ten pods on each node six have a GPU, so that two are free.
	gpuPodsPerNode, plainPodsPerNode = 6, 4
	// arriving is how many single pods come, and how many of gangs.
	arriving, arrivingGangs = 1000, 16
)

// ScaleRow is what a scheduler needs for a cluster of some size: CPU of the whole process, the API in memory included,
// and heap without the API.
type ScaleRow struct {
	Scheduler  string  `json:"scheduler" row:"scheduler"`
	StartCPU   float64 `json:"startCPUSeconds" column:"start, CPU s|%.1f"`
	HeapMiB    float64 `json:"heapMiB" column:"heap, MiB|%.0f"`
	PodMillis  float64 `json:"podMillis" column:"single pod, CPU ms|%.2f"`
	GangMillis float64 `json:"gangMillis" column:"pod of a gang of 64, CPU ms|%.2f"`
	LateMillis float64 `json:"standbyMillis" column:"first 1,000 pods of a standby, CPU ms a pod|%.2f"`
}

// Scale is the name of what MeasureScale measures.
const Scale = "scale"

// MeasureScale measures both schedulers on a cluster of that many nodes.
func MeasureScale(ctx context.Context, out io.Writer, nodes int, profiles string) ([]ScaleRow, error) {
	if least := (3*arriving + 64*arrivingGangs) / (gpusPerNode - gpuPodsPerNode); nodes < least {
		return nil, fmt.Errorf("--nodes: %d nodes have too few free GPUs, %d are the least", nodes, least)
	}
	return rowsOf[ScaleRow](ctx, out, Child{Name: Scale, Nodes: nodes, Profiles: profiles}, both, 1)
}

// scale measures one scheduler in this process.
func (c contender) scale(nodes int) (r ScaleRow, err error) {
	r.Scheduler = string(c)
	_, err = c.inWorld(nodes, func(w *world) (float64, error) {
		objects := running(gpuPodsPerNode*nodes, nodes)
		for i, pod := range plain(v1.DefaultSchedulerName, plainPodsPerNode*nodes) {
			pod := pod.(*v1.Pod)
			pod.Spec.NodeName, pod.Status.Phase = nodeName(i%nodes), v1.PodRunning
			objects = append(objects, pod)
		}
		if err := w.create(objects...); err != nil {
			return 0, err
		}
		without := heapInUse()
		if r.StartCPU, err = w.cpu(0, w.run); err != nil {
			return 0, err
		}
		r.HeapMiB = (heapInUse() - without) / (1 << 20)
		millis := func(objects []apiruntime.Object, f func() error) (float64, error) {
			seconds, err := w.cpu(0, f)
			return 1000 * seconds / float64(podsIn(objects)), err
		}
		pods := named("single-", singles(w.profile(), arriving, false))
		if r.PodMillis, err = millis(pods, func() error { return w.create(pods...) }); err != nil {
			return 0, err
		}
		members := gangs(w.profile(), arrivingGangs, 64, 1)
		if c == stock {
			members = named("member-", singles(w.profile(), arrivingGangs*64, true))
		}
		if r.GangMillis, err = millis(members, func() error { return w.create(members...) }); err != nil {
			return 0, err
		}
		leader := w.stop
		lead, err := w.standby()
		if err != nil {
			return 0, err
		}
		w.settle()
		leader()
		late := named("late-", singles(w.profile(), arriving, false))
		if err := w.create(late...); err != nil {
			return 0, err
		}
		w.settle()
		r.LateMillis, err = millis(late, func() error { lead(); return nil })
		runtime.KeepAlive(objects)
		return 0, err
	})
	return r, err
}

// named are pods with other names.
func named(prefix string, pods []apiruntime.Object) []apiruntime.Object {
	for _, pod := range pods {
		pod := pod.(*v1.Pod)
		pod.Name = prefix + pod.Name
	}
	return pods
}
