package overview

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// mostWarnings is how many warnings are kept.
const mostWarnings = 200

// Pricing says what nodes cost.
type Pricing struct {
	// Of returns the price of a node an hour, and false where it is not known.
	Of func(*v1.Node) (price.MicroDollars, bool)
	// Rates divide the price of a node over its resources.
	Rates price.Rates
}

// Store keeps the objects of a cluster that an overview is made of. Its methods may be called from any goroutine. The
// caller must not change objects after Set.
type Store struct {
	reading
	mu      sync.Mutex
	objects map[key]metav1.Object
	// warnings are those among the events, and leftOut the kinds that cannot be read with the reasons.
	warnings []Warning
	leftOut  map[string]string
	// changed receives a value after a change of a watched cluster.
	changed chan struct{}
}

// reading is how objects are read.
type reading struct {
	keys    gpuview.Keys
	pricing Pricing
	// levels are those of the network. The narrowest one that a node has is shown.
	levels podview.NetworkLevels
}

// countedPod is a pod with what it requests, which is added up once.
type countedPod struct {
	*v1.Pod
	info *framework.PodInfo
}

// key names an object.
type key struct {
	of   reflect.Type
	kind string // of an object without a Go type
	types.NamespacedName
}

func keyOf(o metav1.Object) key {
	k := key{of: reflect.TypeOf(o), NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	if custom, ok := o.(*unstructured.Unstructured); ok {
		k.kind = custom.GetKind()
	}
	return k
}

// NewStore makes an empty store.
func NewStore(keys gpuview.Keys, pricing Pricing, levels podview.NetworkLevels) *Store {
	return &Store{reading: reading{keys, pricing, levels}, objects: map[key]metav1.Object{}, leftOut: map[string]string{},
		changed: make(chan struct{}, 1)}
}

// Set adds an object or replaces its previous state. Objects of kinds that an overview does not show are ignored.
func (s *Store) Set(obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := obj.(type) {
	case *v1.Event:
		s.addWarning(warningOf(o))
	case *unstructured.Unstructured:
		s.objects[keyOf(o)] = decoded(o)
	case *v1.Pod:
		info, _ := framework.NewPodInfo(o) // only selectors can be bad, which do not count here
		s.objects[keyOf(o)] = countedPod{o, info}
	case metav1.Object:
		s.objects[keyOf(o)] = o
	}
}

// Delete removes an object.
func (s *Store) Delete(obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := obj.(metav1.Object); ok {
		delete(s.objects, keyOf(o))
	}
}

// snapshot has the objects of a cluster at one moment, and the references between them.
type snapshot struct {
	reading
	nodes map[string]*nodeEntry
	pods  []*podEntry
	gangs map[gang.ID]*gangEntry
	// jobs are those that have not succeeded. They may have no pods.
	jobs   map[types.UID]*batchv1.Job
	queues kueue
	// mix counts all pods that have not ended.
	mix stranded.Mix
	claimedDevices
}

// nodeEntry is a node and the pods on it that have not ended.
type nodeEntry struct {
	node *v1.Node // nil if only pods of it are known
	pods []*podEntry
}

// podEntry is a pod that has not ended, or a member of a gang.
type podEntry struct {
	pod     *v1.Pod
	info    *framework.PodInfo
	gang    gang.ID
	minimum int
	// milli is its GPU request with the devices of its claims, in thousandths of a GPU.
	milli int64
}

type gangEntry struct {
	group   *schedulingv1alpha1.PodGroup
	members []*podEntry
}

// snapshot puts the objects together. It is called with the lock held.
func (s *Store) snapshot() *snapshot {
	n := &snapshot{reading: s.reading, nodes: map[string]*nodeEntry{}, gangs: map[gang.ID]*gangEntry{},
		jobs: map[types.UID]*batchv1.Job{}, queues: kueue{clusterQueues: map[string]*kueueClusterQueue{}}}
	var pods []countedPod
	var groups []runtime.Object
	var deviceSlices []*resourcev1.ResourceSlice
	var claims []*resourcev1.ResourceClaim
	for _, obj := range s.objects {
		switch o := obj.(type) {
		case *v1.Node:
			n.nodeNamed(o.Name).node = o
		case countedPod:
			pods = append(pods, o)
		case *schedulingv1alpha1.PodGroup:
			n.gangNamed(gang.ID{Namespace: o.Namespace, Name: o.Name}).group = o
		case *batchv1.Job:
			if jobCondition(o, batchv1.JobComplete) == nil {
				n.jobs[o.UID] = o
			}
		case *unstructured.Unstructured:
			groups = append(groups, o)
		case *resourcev1.ResourceSlice:
			deviceSlices = append(deviceSlices, o)
		case *resourcev1.ResourceClaim:
			if o.Status.Allocation != nil {
				claims = append(claims, o)
			}
		default:
			n.queues.add(o)
		}
	}
	n.claimedDevices = countDevices(s.keys.Drivers, deviceSlices, claims)
	trees := read.TreesOf(groups)
	for _, pod := range pods {
		n.addPod(pod, trees)
	}
	return n
}

func (s *snapshot) nodeNamed(name string) *nodeEntry {
	if s.nodes[name] == nil {
		s.nodes[name] = &nodeEntry{}
	}
	return s.nodes[name]
}

func (s *snapshot) gangNamed(id gang.ID) *gangEntry {
	if s.gangs[id] == nil {
		s.gangs[id] = &gangEntry{}
	}
	return s.gangs[id]
}

// addPod adds a pod. One that has ended counts only as a member of its gang.
func (s *snapshot) addPod(counted countedPod, trees *read.OwnerPolicy) {
	pod := counted.Pod
	p := &podEntry{pod: pod, info: counted.info}
	if m, err := trees.GangOf(pod); err == nil {
		p.gang, p.minimum = m.ID, m.Minimum
	}
	if p.gang != (gang.ID{}) {
		g := s.gangNamed(p.gang)
		g.members = append(g.members, p)
	}
	if podview.Finished(pod) {
		if p.gang != (gang.ID{}) {
			s.pods = append(s.pods, p)
		}
		return
	}
	s.pods = append(s.pods, p)
	p.milli = s.readRequest(pod) + s.claimedMilli[pod.UID]
	if pod.Spec.NodeName != "" {
		n := s.nodeNamed(pod.Spec.NodeName)
		n.pods = append(n.pods, p)
	}
}

// readRequest reads the GPU request of the pod, in thousandths of a GPU, and adds it to the mix.
func (s *snapshot) readRequest(pod *v1.Pod) int64 {
	if !s.keys.MayUseGPU(pod) {
		return 0
	}
	asked, err := s.keys.PodGPURequest(pod)
	if err != nil {
		return 0 // the scheduler reports the error
	}
	cpu, memory, _ := podview.PodNeeds(pod)
	s.mix.Add(pod, stranded.Need{Count: asked.Count, Milli: asked.Milli, CPUMilli: cpu, MemoryBytes: memory,
		Models: asked.Models})
	return int64(asked.TotalMilli(0))
}

// addWarning adds an event. It replaces an earlier one about the same object with the same reason.
func (s *Store) addWarning(w Warning) {
	w.Object, w.Reason, w.Message = plainText(w.Object), plainText(w.Reason), plainText(w.Message)
	s.warnings = slices.DeleteFunc(s.warnings, func(o Warning) bool {
		return o.Namespace == w.Namespace && o.Object == w.Object && o.Reason == w.Reason
	})
	s.warnings = append(s.warnings, w)
	slices.SortStableFunc(s.warnings, func(x, y Warning) int { return y.Time.Compare(x.Time) })
	s.warnings = s.warnings[:min(len(s.warnings), mostWarnings)]
}

// leaveOut records why a kind cannot be read. An empty reason means that it can be read again.
func (s *Store) leaveOut(kind, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason == "" {
		delete(s.leftOut, kind)
	} else {
		s.leftOut[kind] = reason
	}
}

// leftOutOf are the kinds that cannot be read, and devices that do not count yet, each with the reason.
func (s *Store) leftOutOf(n *snapshot) []string {
	list := []string{}
	for _, kind := range slices.Sorted(maps.Keys(s.leftOut)) {
		list = append(list, kind+": "+s.leftOut[kind])
	}
	claiming := 0
	for _, p := range n.pods {
		if len(p.pod.Spec.ResourceClaims) > 0 && p.pod.Spec.NodeName == "" && !podview.Finished(p.pod) {
			claiming++
		}
	}
	if claiming > 0 {
		list = append(list, plural.Of(claiming, "pending pod")+": devices that are claimed count when they are allocated")
	}
	return list
}

// Cluster is the cluster at this moment.
func (s *Store) Cluster(now time.Time) *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.snapshot()
	c := &Cluster{Taken: now, Nodes: []Node{}, Queue: []Waiting{}, Gangs: []Gang{}, Jobs: []Job{}, Queues: []Queue{},
		Namespaces: []Namespace{}, Warnings: append([]Warning{}, s.warnings...), LeftOut: s.leftOutOf(n)}
	costs := map[string]price.MicroDollars{}
	for _, entry := range n.nodes {
		if entry.node != nil {
			n.addNode(c, entry, costs)
		}
	}
	slices.SortFunc(c.Nodes, func(x, y Node) int {
		return cmp.Or(x.Domain.Compare(y.Domain), cmp.Compare(x.Model, y.Model), compareNames(x.Name, y.Name))
	})
	n.addGangs(c, now)
	n.addQueue(c, now)
	n.addJobs(c, now)
	n.addNamespaces(c, costs)
	return c
}
