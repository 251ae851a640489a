package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/legacyregistry"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/simulation"
	"berth.dev/berth/pkg/lab/simulation/memapi"
	"berth.dev/berth/pkg/process/schedulerconfig"
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

// sample is what a process measured of one scheduler.
type sample struct {
	// Cost is CPU seconds or bytes, for each pod where pods are placed.
	Cost float64 `json:"cost"`
	// PlansPerGang is how many plans were made for each gang that started, where they are counted.
	PlansPerGang float64 `json:"plansPerGang"`
}

// take measures one scheduler in this process, which measures nothing else.
func take(name string, c contender) (sample, error) {
	switch name {
	case "identical":
		return c.inWorld(2000, func(w *world) (float64, error) { return w.place(singles(c.profile(), c.part(2000), true)) })
	case "distinct":
		return c.inWorld(2000, func(w *world) (float64, error) { return w.place(singles(c.profile(), c.part(1000), false)) })
	case "plain":
		return c.inWorldOf(500, 0, func(w *world) (float64, error) { return w.place(plain(c.profile(), 1000)) })
	case "plugins":
		return c.inWorldOf(500, 0, func(w *world) (float64, error) { return w.place(plain(c.profile(), plainPods)) })
	case "plain-5000":
		return c.inWorldOf(5000, 0, func(w *world) (float64, error) { return w.place(plain(c.profile(), 1000)) })
	case "gangs":
		return c.inWorld(2000, func(w *world) (float64, error) { return w.place(gangs(c.profile(), c.part(20), 32, 1)) })
	case "start":
		return c.inWorld(2000, func(w *world) (float64, error) { return w.begin(map[contender]int{berth: 63}[c], 16, false) })
	case "start-gated":
		return c.inWorld(2000, func(w *world) (float64, error) { return w.begin(63, 16, c == stock) })
	case "start-5000":
		gangs, members := c.part(64), 64
		return c.inWorld(5000, func(w *world) (float64, error) {
			seconds, err := w.begin(gangs, members, false)
			return seconds / float64(gangs*members), err
		})
	case "backlog":
		return c.inWorld(1000, func(w *world) (float64, error) { return w.wait(gangs(w.profile(), 1000, 8, 1)) })
	case "backlog-pods":
		return c.inWorld(1000, func(w *world) (float64, error) { return w.wait(singles(w.profile(), 5000, true)) })
	case "backlog-distinct":
		return c.inWorld(1000, func(w *world) (float64, error) { return w.wait(singles(w.profile(), 5000, false)) })
	case "gangs-5000":
		return c.inWorld(5000, func(w *world) (float64, error) { return w.beginAll(gangs(c.profile(), 64, 64, 1)) })
	case "memory":
		return c.inWorld(2000, func(w *world) (float64, error) { return w.heap(8000, 200) })
	case "replay":
		return c.replay()
	}
	return sample{}, fmt.Errorf("nothing is measured under the name %q", name)
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

func (c contender) inWorld(nodes int, measure func(w *world) (float64, error)) (s sample, err error) {
	return c.inWorldOf(nodes, gpusPerNode, measure)
}

// inWorldOf is inWorld where each node has this number of GPUs.
func (c contender) inWorldOf(nodes, gpus int, measure func(w *world) (float64, error)) (s sample, err error) {
	if c == berth {
		if err := utilfeature.DefaultMutableFeatureGate.Set(strings.Join(rig.InstalledGates, ",")); err != nil {
			return s, fmt.Errorf("setting the feature gates: %w", err)
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
		s.Cost, err = measure(w)
		return err
	})
	return s, err
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
	before := usedCPU()
	if err := f(); err != nil {
		return 0, err
	}
	time.Sleep(10 * time.Second) //nolint:forbidigo // virtual time
	w.settle()
	used := usedCPU() - before
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

// wait is how many processors are busy while these pods wait for GPUs that are all taken, and ten pods end a second.
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
	before := usedCPU()
	for i := range seconds * perSecond {
		pod := full[i*37%len(full)].(*v1.Pod)
		w.api.Delete(v1.SchemeGroupVersion.WithResource("pods"),
			types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		time.Sleep(time.Second / perSecond) //nolint:forbidigo // virtual time
	}
	w.settle()
	return (usedCPU() - before).Seconds() / seconds, nil
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

// replay is the CPU time for each pod of a queue.
func (c contender) replay() (sample, error) {
	config, err := c.configuration()
	if err != nil {
		return sample{}, err
	}
	before := usedCPU()
	result, err := replay.Run(context.Background(), config, clusterOf(32, gpusPerNode, queue(c == berth)),
		replay.Options{Mode: replayed.VirtualTime, Profile: c.profile(), Seed: 1})
	if err != nil {
		return sample{}, err
	}
	used := usedCPU() - before
	if result.JobsCompleted != result.Jobs {
		return sample{}, fmt.Errorf("%d of %d jobs were completed", result.JobsCompleted, result.Jobs)
	}
	plans, err := plansMade()
	return sample{used.Seconds() / float64(result.Pods), plans / float64(max(result.GangsStarted, 1))}, err
}

// plansMade is how many plans for gangs this process has made.
func plansMade() (float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return 0, fmt.Errorf("reading the metrics: %w", err)
	}
	plans := uint64(0)
	for _, family := range families {
		if family.GetName() == "berth_gang_plan_duration_seconds" {
			for _, m := range family.GetMetric() {
				plans += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return float64(plans), nil
}

func usedCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // Linux refuses only what it does not know
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
