// Package invariants watches every change that an API makes and finds what breaks a promise of the scheduler's: each
// pod is bound once, no node and no GPU is given away twice, a gang starts whole. It takes what it compares from the
// objects alone and knows nothing of the scheduler's own view, so it serves a simulated API as well as a real one.
package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/util/taints"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// sharedMode is the mode of a node on which the scheduler hands out the GPUs.
const sharedMode = "shared"

// The kinds of faults.
const (
	BoundTwice    = "a pod was bound twice"
	OverCommitted = "a node is over its allocatable"
	OverShared    = "a GPU is given away more than once"
	Unassigned    = "a pod has no devices"
	StartedInPart = "a gang is started in part"
	EvictedInPart = "a gang is evicted in part"
	Unexplained   = "a pending pod says no reason"
)

// Fault is a promise that was broken.
type Fault struct{ Kind, Detail string } //nolint:errname // a fault of the scheduler, not of the program

func (f *Fault) Error() string { return f.Kind + ": " + f.Detail }

const (
	// settled is how long ago a node must have changed to be held against a binding: a member of a gang keeps its node,
	// which it was given before the change, until the others have theirs.
	settled = 5 * time.Minute
	// Patience is how long a gang may be bound in part: members are bound one by one, and a binding that fails in bad
	// weather is tried again after a back-off.
	Patience = 2 * time.Second
	// UnderWay is how long a binding may take from its decision on.
	UnderWay = 5 * time.Second
	// PatienceInStorm is long enough for several back-offs of ten seconds in a row.
	PatienceInStorm = 3 * time.Minute
)

// Checker is told of every change in the order in which the API makes them, and compares it with what a scheduler
// promises. It knows nothing of the scheduler's own view.
type Checker struct {
	keys gpuview.Keys
	// Patience is how long a gang may be bound in part. It may be changed before the first change is observed.
	Patience time.Duration
	// UnderWay is how long a binding may take. It may be changed before the first change is observed.
	UnderWay time.Duration

	mu      sync.Mutex
	faults  []*Fault
	nodes   map[string]*v1.Node
	changed map[string]time.Time // nodes, when their allocatable last became less
	pods    map[types.NamespacedName]*v1.Pod
	groups  map[string]*unstructured.Unstructured
	jobs    map[string]string // gangs of the Jobs that came last, by the names of their PodGroups
	devices map[string]string // claimed devices, and the claim that has each
	claims  map[string][]string
	closed  time.Time               // when a node last closed to pods, some or all
	partial map[string]time.Time    // gangs that are bound in part, since when
	bereft  map[string]time.Time    // gangs, when they last lost a member
	revised map[string]time.Time    // gangs, when they last got another minimum
	begun   map[string]bool         // gangs that have had their minimum, until no member is left that had a node
	told    map[string]bool         // those of them whose PodGroup has said so
	broken  map[string]breach       // gangs that an eviction has left with less than their minimum
	made    map[types.UID]time.Time // pods, when they came
	bound   map[types.UID]time.Time // pods, when they got their node
	marked  map[types.UID]time.Time // pods, when their eviction began
	evicted []*v1.Pod
}

// New returns a checker that lets a gang be bound in part for so long.
func New(patience time.Duration) *Checker {
	return &Checker{
		keys: gpuview.DefaultKeys(), Patience: patience, UnderWay: UnderWay, nodes: map[string]*v1.Node{},
		changed: map[string]time.Time{},
		pods:    map[types.NamespacedName]*v1.Pod{}, groups: map[string]*unstructured.Unstructured{},
		jobs: map[string]string{}, devices: map[string]string{},
		claims: map[string][]string{}, partial: map[string]time.Time{}, bereft: map[string]time.Time{},
		revised: map[string]time.Time{},
		begun:   map[string]bool{}, told: map[string]bool{}, broken: map[string]breach{},
		made: map[types.UID]time.Time{}, bound: map[types.UID]time.Time{}, marked: map[types.UID]time.Time{},
	}
}

func (c *Checker) fault(kind, detail string, args ...any) {
	c.faults = append(c.faults, &Fault{kind, fmt.Sprintf(detail, args...)})
}

// First is the fault that came first, or nil.
func (c *Checker) First() *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.faults) == 0 {
		return nil
	}
	return c.faults[0]
}

// Observe takes a change of an object, which was old before, in the order in which the API makes them.
func (c *Checker) Observe(event watch.EventType, object, old runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch obj := object.(type) {
	case *v1.Node:
		c.node(event, obj)
	case *v1.Pod:
		c.pod(event, obj)
	case *resourcev1.ResourceClaim:
		c.claim(event, obj)
	case *batchv1.Job:
		c.job(event, obj, old)
	case *unstructured.Unstructured:
		if obj.GetKind() == "PodGroup" {
			c.group(event, obj, old)
		}
	}
}

func (c *Checker) node(event watch.EventType, node *v1.Node) {
	old := c.nodes[node.Name]
	if event == watch.Deleted {
		delete(c.nodes, node.Name)
		c.closes()
		return
	}
	c.nodes[node.Name] = node
	if old == nil {
		return
	}
	shrinks := hasLess(node, old)
	if shrinks {
		c.changed[node.Name] = time.Now()
	}
	newTaint := func(taint v1.Taint) bool { return !taints.TaintExists(old.Spec.Taints, &taint) }
	if shrinks || node.Spec.Unschedulable && !old.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, newTaint) ||
		!maps.Equal(old.Labels, node.Labels) {
		c.closes()
	}
}

// hasLess reports whether less is allocatable than before.
func hasLess(node, before *v1.Node) bool {
	for name, amount := range before.Status.Allocatable {
		if now := node.Status.Allocatable[name]; now.Cmp(amount) < 0 {
			return true
		}
	}
	return false
}

func (c *Checker) pod(event watch.EventType, pod *v1.Pod) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	before := c.pods[key]
	if event == watch.Deleted {
		delete(c.pods, key)
		c.evicted = append(c.evicted, pod)
	} else {
		c.pods[key] = pod
	}
	if event == watch.Added {
		c.made[pod.UID] = time.Now()
	}
	bound := before != nil && before.Spec.NodeName == "" && pod.Spec.NodeName != ""
	if before != nil && before.Spec.NodeName != "" && before.UID == pod.UID && pod.Spec.NodeName != before.Spec.NodeName {
		c.fault(BoundTwice, "%s was bound to %s, then to %s", pod.Name, before.Spec.NodeName, pod.Spec.NodeName)
	}
	if _, known := c.marked[pod.UID]; !known && Evicted(pod) {
		c.marked[pod.UID] = time.Now()
	}
	if bound && event == watch.Modified {
		c.bound[pod.UID] = time.Now()
		c.fits(pod)
		c.assigned(pod)
	}
	if gang := GangOf(pod); gang != "" {
		c.member(gang, event, pod, before, bound && event == watch.Modified)
	}
	if before != nil {
		if gang := GangOf(before); gang != GangOf(pod) {
			c.left(gang, false)
		}
	}
}

// fits compares what the pods of a node ask for with what it has.
func (c *Checker) fits(pod *v1.Pod) {
	node := c.nodes[pod.Spec.NodeName]
	if node == nil || time.Since(c.changed[node.Name]) < settled {
		return
	}
	used := v1.ResourceList{v1.ResourcePods: {}}
	for _, other := range c.on(node.Name) {
		for name, amount := range resource.PodRequests(other, resource.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(amount)
			used[name] = sum
		}
	}
	for name := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		amount, has := used[name], node.Status.Allocatable[name]
		if amount.Cmp(has) > 0 {
			c.fault(OverCommitted, "%s on %s: pods ask for %s of %s, allocatable %s", pod.Name, node.Name, amount.String(), name,
				has.String())
		}
	}
}

// on lists the pods that hold a node, in the order of their names.
func (c *Checker) on(node string) []*v1.Pod {
	var pods []*v1.Pod
	for _, pod := range c.pods {
		if pod.Spec.NodeName == node && !podview.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// assigned adds up what is given away of each GPU of a node.
func (c *Checker) assigned(pod *v1.Pod) {
	node := c.nodes[pod.Spec.NodeName]
	asked, err := c.keys.PodGPURequest(pod)
	if node == nil || err != nil || asked.Count == 0 || node.Labels[wellknown.GPUModeKey] != sharedMode {
		return
	}
	if _, ok := gpuview.Granted(pod); !ok {
		c.fault(Unassigned, "%s was bound to %s without a record of its GPUs", pod.Name, node.Name)
		return
	}
	given := map[int]int{}
	for _, other := range c.on(node.Name) {
		grant, _ := gpuview.Granted(other)
		for _, device := range grant.Devices {
			if given[device] += grant.Share.Milli; given[device] > gpu.WholeMilli {
				c.fault(OverShared, "GPU %d of %s is given to %d thousandths, the last to %s", device, node.Name, given[device],
					pod.Name)
			}
		}
	}
}

// claim keeps which claim has which device.
func (c *Checker) claim(event watch.EventType, claim *resourcev1.ResourceClaim) {
	for _, device := range c.claims[claim.Name] {
		delete(c.devices, device)
	}
	delete(c.claims, claim.Name)
	if event == watch.Deleted || claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		device := result.Pool + "/" + result.Device
		if other := c.devices[device]; other != "" {
			c.fault(OverShared, "device %s is allocated to the claims %s and %s", device, other, claim.Name)
		}
		c.devices[device] = claim.Name
		c.claims[claim.Name] = append(c.claims[claim.Name], device)
	}
}

// All are the faults since the last call.
func (c *Checker) All() []*Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults := c.faults
	c.faults = nil
	return faults
}

// Gone returns the pods that were deleted since the last call.
func (c *Checker) Gone() []*v1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	evicted := c.evicted
	c.evicted = nil
	return evicted
}

// Placement is the node of each pod that exists.
func (c *Checker) Placement() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	placed := map[string]string{}
	for _, pod := range c.pods {
		placed[pod.Name] = pod.Spec.NodeName
	}
	return placed
}

// Reason is what a pending pod says of itself.
func (c *Checker) Reason(pod types.NamespacedName) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod := c.pods[pod]; pod != nil {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == v1.PodScheduled {
				return condition.Message
			}
		}
	}
	return ""
}

// Explained looks for pods that wait and do not say why.
func (c *Checker) Explained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range c.pods {
		if pod.Spec.NodeName != "" || podview.Finished(pod) || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		said := slices.ContainsFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool {
			return condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse && condition.Message != ""
		})
		if !said {
			c.fault(Unexplained, "%s", pod.Name)
		}
	}
}
