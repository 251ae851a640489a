package guard

import (
	"fmt"
	"runtime"
	"strings"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/schedulerconfig"
)

// contender is a scheduler that is measured.
type contender string

const (
	stock contender = "stock"
	berth contender = "berth"
)

// profile is the schedulerName of its pods.
func (c contender) profile() string {
	if c == berth {
		return "berth-scheduler"
	}
	return v1.DefaultSchedulerName
}

// configuration is the installed one, or kube-scheduler's default, in which no plugin of ours runs.
func (c contender) configuration() (*schedulerconfig.Configuration, error) {
	if c == berth {
		return schedulerconfig.Shipped()
	}
	return schedulerconfig.Parse("stock",
		[]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"))
}

// part of the work is enough for stock, which takes several times as long for each pod.
func (c contender) part(n int) int {
	if c == stock {
		return n / 4
	}
	return n
}

// world is a cluster on a virtual clock, on which nothing has to be waited for and the same work is done each time.
type world struct {
	contender
	nodes int
	// gpus is how many each node has.
	gpus int
	api  *memapi.Server
	// stop stops the scheduler.
	stop func()
}

// placing is the CPU time for each of the objects' pods on nodes that each have this number of GPUs.
func (c contender) placing(nodes, gpus int, objects []apiruntime.Object) (float64, error) {
	return c.inWorldOf(nodes, gpus, func(w *world) (float64, error) { return w.place(objects) })
}

// waiting is the CPU time of a second in which the objects' pods wait on 1,000 full nodes; of stock, that of a pod
// without GPUs on 500 nodes, so that the ratio of the two depends little on the machine.
func (c contender) waiting(objects []apiruntime.Object) (float64, error) {
	if c == stock {
		return c.placing(500, 0, plain(c.profile(), 1000))
	}
	return c.inWorld(1000, func(w *world) (float64, error) { return w.wait(objects) })
}

func (c contender) inWorld(nodes int, measure func(w *world) (float64, error)) (float64, error) {
	return c.inWorldOf(nodes, gpusPerNode, measure)
}

// inWorldOf is inWorld where each node has this number of GPUs.
func (c contender) inWorldOf(nodes, gpus int, measure func(w *world) (float64, error)) (measured float64, err error) {
	if c == berth {
		if err := utilfeature.DefaultMutableFeatureGate.Set(strings.Join(rig.InstalledGates, ",")); err != nil {
			return 0, fmt.Errorf("setting the feature gates: %w", err)
		}
	}
	err = simulation.Virtual(time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC), func() error {
		w := &world{contender: c, nodes: nodes, gpus: gpus, api: simulation.NewWorld().API, stop: func() {}}
		defer func() { w.stop() }()
		w.api.StartPods = true
		shipped, err := schedulerconfig.Shipped()
		if err != nil {
			return err
		}
		in := clusterOf(nodes, gpus, nil)
		objects, err := in.Cluster(shipped, "")
		if err != nil {
			return err
		}
		if err := w.create(objects...); err != nil {
			return err
		}
		measured, err = measure(w)
		return err
	})
	return measured, err
}

func (w *world) create(objects ...apiruntime.Object) error {
	for _, object := range objects {
		if err := w.api.Create(object); err != nil {
			return fmt.Errorf("creating an object: %w", err)
		}
	}
	return nil
}

// run starts the scheduler.
func (w *world) run() error {
	lead, err := w.standby()
	if err == nil {
		lead()
	}
	return err
}

// standby starts a scheduler that follows the cluster and places nothing before lead is called.
func (w *world) standby() (lead func(), err error) {
	config, err := w.configuration()
	if err != nil {
		return nil, err
	}
	lab := &simulation.World{API: w.api}
	if err := lab.Start(simulation.Setup{Config: config, Parallelism: config.Component.Parallelism}); err != nil {
		return nil, err
	}
	return func() {
		lab.Run()
		w.stop = lab.Stop
	}, nil
}

// settle waits until everything has come to rest.
func (*world) settle() { synctest.Wait() }

// cpu is the CPU time in seconds from f until the scheduler has done all that there is to do, when this many pods are
// to be pending.
func (w *world) cpu(pending int, f func() error) (float64, error) {
	runtime.GC()
	before := rig.UsedCPU()
	if err := f(); err != nil {
		return 0, err
	}
	time.Sleep(10 * time.Second) //nolint:forbidigo // virtual time
	w.settle()
	used := rig.UsedCPU() - before
	for _, object := range w.api.List(v1.SchemeGroupVersion.WithResource("pods")) {
		if object.(*v1.Pod).Spec.NodeName == "" {
			pending--
		}
	}
	if pending != 0 {
		return 0, fmt.Errorf("%d more pods are pending than should be", -pending)
	}
	return used.Seconds(), nil
}

// place is the CPU time for each of the objects' pods that a running scheduler places.
func (w *world) place(objects []apiruntime.Object) (float64, error) {
	if err := w.run(); err != nil {
		return 0, err
	}
	// The first pod pays for what is done once.
	first := plainPod(w.profile(), "first")
	if w.gpus > 0 {
		first = gpuPod(w.profile(), "first", 1)
	}
	if _, err := w.cpu(0, func() error { return w.create(first) }); err != nil {
		return 0, err
	}
	seconds, err := w.cpu(0, func() error { return w.create(objects...) })
	return seconds / float64(podsIn(objects)), err
}

// podsIn counts the pods among objects.
func podsIn(objects []apiruntime.Object) int {
	pods := 0
	for _, object := range objects {
		if _, is := object.(*v1.Pod); is {
			pods++
		}
	}
	return pods
}

// beginAll is the CPU time for each of the objects' pods of a start that finds them pending and places them.
func (w *world) beginAll(objects []apiruntime.Object) (float64, error) {
	if err := w.create(objects...); err != nil {
		return 0, err
	}
	seconds, err := w.cpu(0, w.run)
	return seconds / float64(podsIn(objects)), err
}

// wait is the CPU time of a second in which these pods wait for GPUs that are all taken, and ten pods end.
func (w *world) wait(waiting []apiruntime.Object) (float64, error) {
	const seconds, perSecond = 30, 10
	full := running(gpusPerNode*w.nodes, w.nodes)
	if err := w.create(append(full, waiting...)...); err != nil {
		return 0, err
	}
	if err := w.run(); err != nil {
		return 0, err
	}
	// Each has been told by then why it waits.
	time.Sleep(time.Minute) //nolint:forbidigo // virtual time
	w.settle()
	runtime.GC()
	before := rig.UsedCPU()
	for i := range seconds * perSecond {
		pod := full[i*37%len(full)].(*v1.Pod)
		w.api.Delete(v1.SchemeGroupVersion.WithResource("pods"),
			types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		time.Sleep(time.Second / perSecond) //nolint:forbidigo // virtual time
	}
	w.settle()
	return (rig.UsedCPU() - before).Seconds() / seconds, nil
}

// heap is what a scheduler keeps for each node and pod when it has placed a few pods beside those that run.
func (w *world) heap(pods, placed int) (float64, error) {
	if err := w.create(running(pods-placed, w.nodes)...); err != nil {
		return 0, err
	}
	if _, err := w.place(singles(w.profile(), placed, false)); err != nil {
		return 0, err
	}
	with := heapInUse()
	w.stop()
	w.settle()
	without := heapInUse()
	runtime.KeepAlive(w) // the API has to count in both
	return (with - without) / float64(w.nodes+pods), nil
}

func heapInUse() float64 {
	// What is pooled survives the first collection.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
