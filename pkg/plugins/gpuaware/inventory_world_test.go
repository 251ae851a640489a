package gpuaware

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gpu"
	harnessframework "berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/require"
)

// kind is how a node of the model gives out its GPUs.
type kind int

const (
	// plain nodes share GPUs without an agent, agented ones with one, and hami nodes list them by UUID.
	plain kind = iota
	agented
	hami
	// plugin nodes leave the choice to the kubelet, sliced ones cut each GPU into time slices, and mig nodes have slices
	// of hardware beside whole GPUs.
	plugin
	sliced
	mig
)

const (
	t4MiB        = 16384
	timeSlices   = 4
	migResource  = "nvidia.com/mig-1g.5gb"
	tasksOfAHAMi = 3
)

// owned reports whether the scheduler chooses the devices.
func (k kind) owned() bool { return k <= hami }

// modelNode is what is true of a node.
type modelNode struct {
	name string
	kind kind
	// gpus are the names of the devices in the order of their indices: UUIDs where the node lists them.
	gpus []string
	sick map[string]bool
	// migs is how many slices of hardware it has.
	migs int
	// revision makes every object of the node another.
	revision int
	// object is as the API server has it, seen as the scheduler's cache knows it.
	object, seen *v1.Node
}

func (n *modelNode) build() *v1.Node {
	o := gpuNodeObject(n.name, len(n.gpus), "Tesla-T4", "nvidia.com/gpu.memory", fmt.Sprint(t4MiB))
	o.ResourceVersion = fmt.Sprint(n.revision)
	n.revision++
	switch n.kind {
	case plain:
		o.Labels["berth.dev/gpu-mode"] = "shared"
	case agented:
		o.Labels["berth.dev/gpu-mode"], o.Labels["berth.dev/gpu-agent"] = "shared", "ours"
	case hami:
		list := ""
		for _, uuid := range n.gpus {
			list += fmt.Sprintf("%s,%d,%d,100,NVIDIA-Tesla-T4,0,%t:", uuid, tasksOfAHAMi, t4MiB, !n.sick[uuid])
		}
		o.Annotations = strs{"hami.io/node-nvidia-register": list}
	case sliced:
		o.Labels["nvidia.com/gpu.replicas"], o.Labels["nvidia.com/gpu.sharing-strategy"] = fmt.Sprint(timeSlices),
			"time-slicing"
		o.Status.Allocatable["nvidia.com/gpu"] = *resource.NewQuantity(int64(len(n.gpus)*timeSlices), resource.DecimalSI)
	case mig:
		o.Labels["nvidia.com/mig.strategy"] = "mixed"
		o.Status.Allocatable[migResource] = *resource.NewQuantity(int64(n.migs), resource.DecimalSI)
	case plugin:
	}
	return o
}

// ask is what a pod asks for: count devices with that share of each, or count slices.
type ask struct {
	count int
	share gpu.Share
	// resource is that by which the pod asks, empty for annotations. byHAMi asks for a share by resources.
	resource string
	byHAMi   bool
}

// hold is what a pod holds of the devices with these names.
type hold struct {
	node  string
	gpus  []string
	share gpu.Share
}

// step is how far a pod has come.
type step int

const (
	pending step = iota
	// reserved pods have been promised devices, told ones carry them at the API server, bound ones are on their node.
	reserved
	told
	bound
)

// modelPod is what is true of a pod.
type modelPod struct {
	// object is as the API server has it.
	object *v1.Pod
	ask    ask
	step   step
	// foreign pods were put on their node by another scheduler.
	foreign bool
	holds   *hold
	// state and assumed are of the cycle that the pod is in.
	state   fwk.CycleState
	assumed *v1.Pod
}

// model is a naive picture of an API server, a scheduler and the nodes around the plugin.
type model struct {
	t      *rapid.T
	tb     *testing.T
	client *fake.Clientset
	nodes  []*modelNode
	pods   map[types.UID]*modelPod
	next   int
	h      *harness
	stop   context.CancelFunc
	// toPlugin and toCache are what the plugin and the scheduler's cache are yet to hear of pods, and nodesToCache the
	// latter of nodes: each in order, but not in that of the others.
	toPlugin, toCache, nodesToCache []func()
	// steps counts what was done of each kind.
	steps map[string]int
}

func newModel(t *rapid.T, tb *testing.T, steps map[string]int) *model {
	m := &model{t: t, tb: tb, client: fake.NewClientset(), pods: map[types.UID]*modelPod{}, steps: steps}
	for k := plain; k <= mig; k++ {
		n := &modelNode{name: fmt.Sprint("node-", int(k)), kind: k, sick: map[string]bool{}, migs: 4}
		for i := range 1 + m.draw(4, "GPUs") {
			n.gpus = append(n.gpus, n.gpuName(i))
		}
		n.object = n.build()
		require.NoError(t, m.client.Tracker().Add(n.object))
		m.nodes = append(m.nodes, n)
	}
	m.start()
	return m
}

// gpuName names a GPU that the node has not had before, or had at that index.
func (n *modelNode) gpuName(i int) string {
	if n.kind == hami {
		n.revision++
		return fmt.Sprintf("GPU-%d", n.revision)
	}
	return fmt.Sprint(i)
}

// draw returns one of n numbers, each about as often.
func (m *model) draw(n int, what string) int {
	return int(rapid.Uint64().Draw(m.t, what) * 0x9e3779b97f4a7c15 >> 33 % uint64(n))
}

func (m *model) some(of func(*modelPod) bool) *modelPod {
	var found []*modelPod
	for _, uid := range slices.Sorted(maps.Keys(m.pods)) {
		if of(m.pods[uid]) {
			found = append(found, m.pods[uid])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[m.draw(len(found), "pod")]
}

func (m *model) node(name string) *modelNode {
	return m.nodes[slices.IndexFunc(m.nodes, func(n *modelNode) bool { return n.name == name })]
}

// start runs a new process of the scheduler, whose plugin hears of the pods one by one. Its informers are connected to
// nothing: the model tells handlers and stores itself.
func (m *model) start() {
	if m.stop != nil {
		m.stop()
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &harness{Scheduler: harnessframework.New(ctx, fake.NewClientset()), ctx: ctx, client: m.client}
	h.Client, h.Recorder, m.stop = m.client, events.NewFakeRecorder(10_000), stop
	h.Framework, h.plugin = h.newFramework(m.tb, alone(defaultArgs()))
	m.h, m.toPlugin, m.toCache, m.nodesToCache = h, nil, nil, nil
	for _, n := range m.nodes {
		n.seen = n.object
		m.storeNode(n)
		h.Cache.AddNode(h.logger, n.object)
	}
	for _, uid := range slices.Sorted(maps.Keys(m.pods)) {
		p := m.pods[uid]
		if p.step != bound {
			p.step, p.holds, p.state, p.assumed = pending, nil, nil, nil
		}
		m.tell(nil, p.object)
		if p.step == bound {
			m.deliver(&m.toCache, len(m.toCache))
		}
	}
}

func (m *model) storeNode(n *modelNode) {
	if err := m.h.Factory.Core().V1().Nodes().Informer().GetStore().Add(n.object); err != nil {
		m.t.Fatal(err)
	}
}

// tell lets the informers hear of a pod that has come, changed or gone.
func (m *model) tell(before, after *v1.Pod) {
	h, store := m.h, m.h.Factory.Core().V1().Pods().Informer().GetStore()
	plugin := h.plugin.shared.podEvents()
	var err error
	switch {
	case before == nil:
		err = store.Add(after)
		m.toPlugin = append(m.toPlugin, func() { plugin.OnAdd(after, false) })
	case after == nil:
		err = store.Delete(before)
		m.toPlugin = append(m.toPlugin, func() { plugin.OnDelete(before) })
	default:
		err = store.Update(after)
		m.toPlugin = append(m.toPlugin, func() { plugin.OnUpdate(before, after) })
	}
	if err != nil {
		m.t.Fatal(err)
	}
	was, is := before != nil && before.Spec.NodeName != "", after != nil && after.Spec.NodeName != ""
	m.toCache = append(m.toCache, func() {
		var err error
		switch {
		case is && was:
			err = h.Cache.UpdatePod(h.logger, before, after)
		case is:
			err = h.Cache.AddPod(h.logger, after)
		case was:
			err = h.Cache.RemovePod(h.logger, before)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	})
}

// deliver lets the next n events arrive.
func (m *model) deliver(queue *[]func(), n int) {
	for _, event := range (*queue)[:n] {
		event()
	}
	*queue = (*queue)[n:]
}

func (m *model) settle() {
	for _, queue := range []*[]func(){&m.toPlugin, &m.toCache, &m.nodesToCache} {
		m.deliver(queue, len(*queue))
	}
}

// quiet reports whether all parts have heard of everything.
func (m *model) quiet() bool { return len(m.toPlugin)+len(m.toCache)+len(m.nodesToCache) == 0 }

// write changes a pod at the API server.
func (m *model) write(p *modelPod, change func(*v1.Pod)) {
	before := p.object
	p.object = m.stored(p).DeepCopy()
	change(p.object)
	if err := m.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), p.object,
		p.object.Namespace); err != nil {
		m.t.Fatal(err)
	}
	m.tell(before, p.object)
}

func (m *model) stored(p *modelPod) *v1.Pod {
	stored, err := m.client.CoreV1().Pods(p.object.Namespace).Get(m.h.ctx, p.object.Name, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	return stored
}

// create makes a pod that asks for GPUs in one of the ways there are. Some carry answers that are not theirs.
func (m *model) create() *modelPod {
	p := &modelPod{}
	name := fmt.Sprint("pod-", m.next)
	m.next++
	requests, annotations := strs{}, strs{}
	count := 1 + m.draw(3, "count")
	milli := []int{100, 250, 300, 500, 700, 900, 1000}[m.draw(7, "milli")]
	memMiB := []int{1000, 4096, 8192, 8193, 12000, 16384}[m.draw(6, "memory")]
	ofMemory := gpu.Share{Milli: memMiB * 1000 / t4MiB, MemMiB: memMiB}
	ofCompute := gpu.Share{Milli: milli, MemMiB: t4MiB * milli / 1000}
	whole := gpu.Share{Milli: gpu.WholeMilli, MemMiB: t4MiB}
	switch m.draw(6, "how it asks") {
	case 0:
		annotations["alibabacloud.com/gpu-milli"], annotations["alibabacloud.com/gpu-count"] = fmt.Sprint(milli),
			fmt.Sprint(count)
		p.ask = ask{count: count, share: ofCompute}
	case 1:
		annotations["gpu-fraction"], annotations["gpu-fraction-num-devices"] = fmt.Sprint(float64(milli)/1000),
			fmt.Sprint(count)
		p.ask = ask{count: count, share: ofCompute}
	case 2:
		annotations["gpu-memory"] = fmt.Sprint(memMiB)
		p.ask = ask{count: 1, share: ofMemory}
	case 3:
		requests["nvidia.com/gpu"] = fmt.Sprint(count)
		p.ask = ask{count: count, share: whole, resource: "nvidia.com/gpu"}
	case 4:
		requests["nvidia.com/gpu"], requests["nvidia.com/gpumem"] = fmt.Sprint(count), fmt.Sprint(memMiB)
		p.ask = ask{count: count, share: ofMemory, resource: "nvidia.com/gpu", byHAMi: true}
	case 5:
		requests[migResource] = fmt.Sprint(count)
		p.ask = ask{count: count, resource: migResource}
	}
	if m.draw(4, "stale answers") == 0 {
		annotations["alibabacloud.com/gpu-index"] = "0-1"
		annotations["berth.dev/gpu-assigned"] = `{"pod":"pod-0","node":"node-0","devices":[0],"milli":1000}`
	}
	p.object = podObject(name, requests, annotations)
	return p
}

func (m *model) add(p *modelPod) {
	m.pods[p.object.UID] = p
	if err := m.client.Tracker().Add(p.object); err != nil {
		m.t.Fatal(err)
	}
	m.tell(nil, p.object)
}

func (m *model) String() string {
	var b strings.Builder
	for _, n := range m.nodes {
		fmt.Fprintf(&b, "%s kind %d GPUs %v sick %v\n", n.name, n.kind, n.gpus, n.sick)
	}
	for _, uid := range slices.Sorted(maps.Keys(m.pods)) {
		p := m.pods[uid]
		fmt.Fprintf(&b, "%s asks %+v step %d on %q foreign %t holds %+v\n", uid, p.ask, p.step, p.object.Spec.NodeName,
			p.foreign, p.holds)
	}
	return b.String()
}
