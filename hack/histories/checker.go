package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/simulation/memapi"
)

// The kinds of faults.
const (
	boundTwice    = "a pod was bound twice"
	overCommitted = "a node is over its allocatable"
	overShared    = "a GPU is given away more than once"
	unassigned    = "a pod has no devices"
	startedInPart = "a gang is started in part"
	unexplained   = "a pending pod says no reason"
	forgotten     = "a pod is left although it fits"
	unhelped      = "a pod is left although others could be evicted for it"
	broken        = "the scheduler does not start"
)

// Fault is a promise that was broken.
type Fault struct{ Kind, Detail string } //nolint:errname // a fault of the scheduler, not of the program

func (f *Fault) Error() string { return f.Kind + ": " + f.Detail }

// comment is the fault as the head of a file.
func comment(fault error) string {
	if fault == nil {
		return ""
	}
	return "# " + strings.ReplaceAll(fault.Error(), "\n", "\n# ") + "\n"
}

const (
	// settled is how long ago a node must have changed to be held against a binding: a member of a gang keeps its node, which
	// it was given before the change, until the others have theirs.
	settled = 5 * time.Minute
	// patience is how long a gang may be bound in part: members are bound one by one, and a binding that fails in bad weather
	// is tried again after a back-off.
	patience = 2 * time.Second
	// underWay is how long a binding may take.
	underWay = 5 * time.Second
	// patienceInStorm is long enough for several back-offs of ten seconds in a row.
	patienceInStorm = 3 * time.Minute
)

// checker is told of every change in the order in which the API makes them, and compares it with what a scheduler promises.
// It knows nothing of the scheduler's own view.
type checker struct {
	keys     kubeview.GPUKeys
	patience time.Duration

	mu      sync.Mutex
	faults  []*Fault
	nodes   map[string]*v1.Node
	changed map[string]time.Time // nodes, when their allocatable last became less
	pods    map[types.NamespacedName]*v1.Pod
	groups  map[string]*unstructured.Unstructured
	devices map[string]string // claimed devices, and the claim that has each
	claims  map[string][]string
	partial map[string]time.Time // gangs that are bound in part, since when
	bereft  map[string]time.Time // gangs, when they last lost a member
	evicted []*v1.Pod
}

func newChecker(patience time.Duration) *checker {
	return &checker{
		keys: kubeview.DefaultGPUKeys(), patience: patience, nodes: map[string]*v1.Node{}, changed: map[string]time.Time{},
		pods: map[types.NamespacedName]*v1.Pod{}, groups: map[string]*unstructured.Unstructured{}, devices: map[string]string{},
		claims: map[string][]string{}, partial: map[string]time.Time{}, bereft: map[string]time.Time{},
	}
}

func (c *checker) fault(kind, detail string, args ...any) {
	c.faults = append(c.faults, &Fault{kind, fmt.Sprintf(detail, args...)})
}

// first is the fault that came first, or nil.
func (c *checker) first() *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.faults) == 0 {
		return nil
	}
	return c.faults[0]
}

// observe is called by the API with every change.
func (c *checker) observe(e memapi.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch obj := e.Object.(type) {
	case *v1.Node:
		c.node(e.Type, obj)
	case *v1.Pod:
		c.pod(e, obj)
	case *resourcev1.ResourceClaim:
		c.claim(e.Type, obj)
	case *unstructured.Unstructured:
		if obj.GetKind() == "PodGroup" {
			c.group(e, obj)
		}
	}
}

func (c *checker) node(event memapi.EventType, node *v1.Node) {
	if event == memapi.Deleted {
		delete(c.nodes, node.Name)
		return
	}
	if old := c.nodes[node.Name]; old != nil {
		for name, amount := range old.Status.Allocatable {
			if now := node.Status.Allocatable[name]; now.Cmp(amount) < 0 {
				c.changed[node.Name] = time.Now()
			}
		}
	}
	c.nodes[node.Name] = node
}

func (c *checker) pod(e memapi.Event, pod *v1.Pod) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	before := c.pods[key]
	if e.Type == memapi.Deleted {
		delete(c.pods, key)
		c.evicted = append(c.evicted, pod)
	} else {
		c.pods[key] = pod
	}
	bound := before != nil && before.Spec.NodeName == "" && pod.Spec.NodeName != ""
	if before != nil && before.Spec.NodeName != "" && before.UID == pod.UID && pod.Spec.NodeName != before.Spec.NodeName {
		c.fault(boundTwice, "%s was bound to %s, then to %s", pod.Name, before.Spec.NodeName, pod.Spec.NodeName)
	}
	if bound && e.Type == memapi.Modified {
		c.fits(pod)
		c.assigned(pod)
	}
	gang := pod.Labels[schedulingv1alpha1.PodGroupLabel]
	switch {
	case gang == "":
	case bound && e.Type == memapi.Modified:
		c.started(gang)
	case e.Type == memapi.Deleted || kubeview.Finished(pod):
		// It is not the scheduler's doing that members are gone, and bindings that are under way cannot be called back.
		delete(c.partial, gang)
		c.bereft[gang] = time.Now()
	}
}

// fits compares what the pods of a node ask for with what it has.
func (c *checker) fits(pod *v1.Pod) {
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
			c.fault(overCommitted, "%s on %s: pods ask for %s of %s, allocatable %s", pod.Name, node.Name, amount.String(), name, has.String())
		}
	}
}

// on lists the pods that hold a node, in the order of their names.
func (c *checker) on(node string) []*v1.Pod {
	var pods []*v1.Pod
	for _, pod := range c.pods {
		if pod.Spec.NodeName == node && !kubeview.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// assigned adds up what is given away of each GPU of a node.
func (c *checker) assigned(pod *v1.Pod) {
	node := c.nodes[pod.Spec.NodeName]
	asked, err := c.keys.PodGPURequest(pod)
	if node == nil || err != nil || asked.Count == 0 || node.Labels[kubeview.GPUModeKey] != sharedMode {
		return
	}
	if _, ok := kubeview.Granted(pod); !ok {
		c.fault(unassigned, "%s was bound to %s without a record of its GPUs", pod.Name, node.Name)
		return
	}
	given := map[int]int{}
	for _, other := range c.on(node.Name) {
		grant, _ := kubeview.Granted(other)
		for _, device := range grant.Devices {
			if given[device] += grant.Share.Milli; given[device] > gpu.WholeMilli {
				c.fault(overShared, "GPU %d of %s is given to %d thousandths, the last to %s", device, node.Name, given[device], pod.Name)
			}
		}
	}
}

// claim keeps which claim has which device.
func (c *checker) claim(event memapi.EventType, claim *resourcev1.ResourceClaim) {
	for _, device := range c.claims[claim.Name] {
		delete(c.devices, device)
	}
	delete(c.claims, claim.Name)
	if event == memapi.Deleted || claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		device := result.Pool + "/" + result.Device
		if other := c.devices[device]; other != "" {
			c.fault(overShared, "device %s is allocated to the claims %s and %s", device, other, claim.Name)
		}
		c.devices[device] = claim.Name
		c.claims[claim.Name] = append(c.claims[claim.Name], device)
	}
}

// group drops what is known of a gang that is made, changed or deleted: it need not have started as what it is now.
func (c *checker) group(e memapi.Event, group *unstructured.Unstructured) {
	name := group.GetName()
	if old, ok := e.Old.(*unstructured.Unstructured); ok && old.GetGeneration() == group.GetGeneration() && minMember(old) == minMember(group) {
		return
	}
	delete(c.partial, name)
	if e.Type == memapi.Deleted {
		delete(c.groups, name)
	} else {
		c.groups[name] = group
	}
}

func minMember(group *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
	return n
}

// started keeps since when a gang is bound in part.
func (c *checker) started(gang string) {
	group := c.groups[gang]
	if group == nil || c.patience > patience && c.sharesOrClaims(gang) {
		return
	}
	if c.enough(gang, group) {
		delete(c.partial, gang)
		return
	}
	// A gang that has lost members gets others one by one.
	bound := 0
	for _, pod := range c.pods {
		if pod.Labels[schedulingv1alpha1.PodGroupLabel] == gang && pod.Spec.NodeName != "" {
			bound++
		}
	}
	if lost, ok := c.bereft[gang]; bound == 1 && (!ok || time.Since(lost) >= underWay) {
		c.partial[gang] = time.Now()
	}
}

// sharesOrClaims says whether members ask for devices that cannot be kept for one whose binding failed (docs/gangs.md).
func (c *checker) sharesOrClaims(gang string) bool {
	for _, pod := range c.pods {
		asked, err := c.keys.PodGPURequest(pod)
		if pod.Labels[schedulingv1alpha1.PodGroupLabel] == gang && (err != nil || asked.Count > 0 || len(pod.Spec.ResourceClaims) > 0) {
			return true
		}
	}
	return false
}

// enough says whether as many members have a node, in total and of each role, as have to start together.
func (c *checker) enough(gang string, group *unstructured.Unstructured) bool {
	total, roles := int64(0), map[string]int{}
	for _, pod := range c.pods {
		if pod.Labels[schedulingv1alpha1.PodGroupLabel] == gang && (pod.Spec.NodeName != "" || pod.Status.Phase == v1.PodSucceeded) {
			total++
			roles[pod.Labels[kubeview.RoleKey]]++
		}
	}
	for role := range strings.SplitSeq(group.GetAnnotations()[kubeview.MinMembersByRoleKey], ",") {
		var least int
		name, number, _ := strings.Cut(role, "=")
		if _, err := fmt.Sscan(number, &least); err == nil && roles[name] < least {
			return false
		}
	}
	return total >= minMember(group)
}

// tick looks for gangs that have been bound in part for too long.
func (c *checker) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gang, since := range c.partial {
		if time.Since(since) > c.patience {
			c.fault(startedInPart, "gang %s has had fewer than %d members bound for %s", gang, minMember(c.groups[gang]), time.Since(since))
			delete(c.partial, gang)
		}
	}
}

// excuse starts the patience with gangs again: no scheduler was there.
func (c *checker) excuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gang := range c.partial {
		c.partial[gang] = time.Now()
	}
}

// gone returns the pods that were deleted since the last call.
func (c *checker) gone() []*v1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	evicted := c.evicted
	c.evicted = nil
	return evicted
}

// placement is the node of each pod that exists.
func (c *checker) placement() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	placed := map[string]string{}
	for _, pod := range c.pods {
		placed[pod.Name] = pod.Spec.NodeName
	}
	return placed
}

// reason is what a pending pod says of itself.
func (c *checker) reason(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod := c.pods[types.NamespacedName{Namespace: namespace, Name: name}]; pod != nil {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == v1.PodScheduled {
				return condition.Message
			}
		}
	}
	return ""
}

// explained looks for pods that wait and do not say why.
func (c *checker) explained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range c.pods {
		if pod.Spec.NodeName != "" || kubeview.Finished(pod) || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		said := slices.ContainsFunc(pod.Status.Conditions, func(condition v1.PodCondition) bool {
			return condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse && condition.Message != ""
		})
		if !said {
			c.fault(unexplained, "%s", pod.Name)
		}
	}
}
