package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/podview"
)

// naiveRoom answers what index answers from all nodes and pods each time, with the scheduler's own helpers.
type naiveRoom struct {
	nodes   map[string]*v1.Node
	pods    map[apitypes.UID]*v1.Pod
	claimed map[v1.ResourceName]bool
}

func (r *naiveRoom) bound() []*v1.Pod {
	var out []*v1.Pod
	for _, pod := range r.pods {
		if pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			out = append(out, pod)
		}
	}
	return out
}

// why returns the stock scheduler's words for what keeps the pod off the node whatever it requests, or nothing.
func (r *naiveRoom) why(pod *v1.Pod, node *v1.Node) string {
	cordon := v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !corev1helpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &cordon,
		true) {
		return "node(s) were unschedulable"
	}
	if _, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations,
		helper.DoNotScheduleTaintsFilterFunc(), true); found {
		return "node(s) had untolerated taint(s)"
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err == nil && !ok {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	return ""
}

func inUnits(name v1.ResourceName, list v1.ResourceList) int64 {
	q := list[name]
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func (r *naiveRoom) offered(name v1.ResourceName) bool {
	for _, node := range r.nodes {
		if inUnits(name, node.Status.Allocatable) > 0 {
			return true
		}
	}
	return false
}

func (r *naiveRoom) free(name v1.ResourceName, node *v1.Node, empty bool) int64 {
	free := inUnits(name, node.Status.Allocatable)
	if empty {
		return free
	}
	for _, pod := range r.bound() {
		if pod.Spec.NodeName != node.Name {
			continue
		}
		if name == v1.ResourcePods {
			free--
		} else {
			free -= inUnits(name, resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))
		}
	}
	return free
}

// slots returns how many pods like this fit on the node.
func (r *naiveRoom) slots(pod *v1.Pod, node *v1.Node, empty bool) int {
	if r.why(pod, node) != "" {
		return 0
	}
	least := manySlots
	for _, n := range r.slotsBy(pod, node, empty) {
		least = min(least, n)
	}
	return least
}

// slotsBy returns how many pods fit on the node by each resource alone, by what is said where it is short.
func (r *naiveRoom) slotsBy(pod *v1.Pod, node *v1.Node, empty bool) map[obstacle.NodeCause]int {
	requests, slots := resource.PodRequests(pod, resource.PodResourcesOptions{}), map[obstacle.NodeCause]int{}
	bound := func(name v1.ResourceName, wanted int64, cause obstacle.NodeCause) {
		delegated := r.claimed[name] && inUnits(name, node.Status.Allocatable) == 0
		if wanted > 0 && r.offered(name) && !delegated {
			slots[cause] = int(max(r.free(name, node, empty), 0) / wanted)
		}
	}
	bound(v1.ResourcePods, 1, told("Too many pods"))
	for name := range requests {
		bound(name, inUnits(name, requests), obstacle.NodeCause{Short: string(name)})
	}
	return slots
}

func (r *naiveRoom) total(pod *v1.Pod, empty bool) int {
	sum := 0
	for _, node := range r.nodes {
		sum += r.slots(pod, node, empty)
	}
	return sum
}

// best sums up domains by the text of their labels.
func (r *naiveRoom) best(pods []*v1.Pod, counts []int, keys, pinned []string, empty bool) int {
	domains := map[string][]*v1.Node{}
	for _, node := range r.nodes {
		name, in := "", true
		for i, key := range keys {
			value := node.Labels[key]
			in = in && value != "" && (i >= len(pinned) || pinned[i] == "" || pinned[i] == value)
			name += value + "/"
		}
		if in {
			domains[name] = append(domains[name], node)
		}
	}
	most := 0
	for _, nodes := range domains {
		fits := 0
		for i, pod := range pods {
			sum := 0
			for _, node := range nodes {
				sum += r.slots(pod, node, empty)
			}
			fits += min(sum, counts[i])
		}
		most = max(most, fits)
	}
	return most
}

// causes gives each node the first cause that it has: a rule, a label, a resource of the empty node, or one of what is
// free.
func (r *naiveRoom) causes(pod *v1.Pod, keys []string) obstacle.Nodes {
	if len(r.nodes) == 0 {
		return obstacle.Nodes{told("the cluster has no nodes")}
	}
	count, most, in := map[obstacle.NodeCause]int{}, map[string]int64{}, map[string]int{}
	for _, node := range r.nodes {
		cause, domain := r.cause(pod, node, keys)
		switch {
		case cause.Fits:
			in[domain]++
		case cause.Most == "at most":
			most[cause.Short] = max(most[cause.Short], inUnits(v1.ResourceName(cause.Short), node.Status.Allocatable))
		}
		count[cause]++
	}
	if len(keys) > 0 && !r.anyHas(keys) {
		return obstacle.Nodes{{Message: "no node has the label " + keys[0], Kind: "no node has the label of a level"}}
	}
	final := map[obstacle.NodeCause]int{}
	for cause, n := range count {
		if cause.Most == "at most" {
			cause.Most = podview.Quantity(v1.ResourceName(cause.Short), most[cause.Short]).String()
		}
		if cause.Fits && len(keys) > 0 {
			cause.Message = fmt.Sprintf(", at most %d in one %s", slices.Max(slices.Collect(maps.Values(in))), keys[0])
		}
		final[cause] = n
	}
	return obstacle.Count(final)
}

func (r *naiveRoom) anyHas(keys []string) bool {
	for _, node := range r.nodes {
		if node.Labels[keys[0]] != "" {
			return true
		}
	}
	return false
}

// cause returns why the pod is not on the node, or its domain.
func (r *naiveRoom) cause(pod *v1.Pod, node *v1.Node, keys []string) (why obstacle.NodeCause, domain string) {
	if why := r.why(pod, node); why != "" {
		cause := told(why)
		cause.Own = why != "node(s) were unschedulable"
		return cause, ""
	}
	for _, key := range keys {
		if domain = node.Labels[key]; domain == "" {
			return obstacle.NodeCause{Message: "node(s) without the label " + key,
				Kind: "node(s) without the label of a level"}, ""
		}
	}
	if name := r.unoffered(pod); name != "" {
		return short(name, node, true), ""
	}
	for _, empty := range []bool{true, false} {
		slots := r.slotsBy(pod, node, empty)
		full := func(name v1.ResourceName) bool {
			n, bounded := slots[obstacle.NodeCause{Short: string(name)}]
			return bounded && n == 0
		}
		requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			if strings.Contains(string(name), "/") && full(name) {
				return short(name, node, empty), ""
			}
		}
		if n, bounded := slots[told("Too many pods")]; bounded && n == 0 {
			return told("Too many pods"), ""
		}
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceEphemeralStorage, v1.ResourceMemory} {
			if full(name) {
				return short(name, node, empty), ""
			}
		}
	}
	return obstacle.NodeCause{Fits: true}, domain
}

// unoffered is a resource that the pod needs and that no node has.
func (r *naiveRoom) unoffered(pod *v1.Pod) v1.ResourceName {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if !r.offered(name) && !r.claimed[name] && inUnits(name, requests) > 0 {
			return name
		}
	}
	return ""
}

func told(words string) obstacle.NodeCause { return obstacle.OfNodes(obstacle.Text(words)) }

func short(name v1.ResourceName, node *v1.Node, empty bool) obstacle.NodeCause {
	c := obstacle.NodeCause{Short: string(name)}
	switch {
	case empty && inUnits(name, node.Status.Allocatable) == 0:
		c.Most = "0"
	case empty:
		c.Most = "at most"
	}
	return c
}

func (r *naiveRoom) anyBelow(priority int32) bool {
	return slices.ContainsFunc(r.bound(), func(pod *v1.Pod) bool {
		return pod.DeletionTimestamp == nil && corev1helpers.PodPriority(pod) < priority
	})
}

func (r *naiveRoom) makesWay(priority int32) bool {
	return slices.ContainsFunc(r.bound(), func(pod *v1.Pod) bool { return corev1helpers.PodPriority(pod) < priority })
}

// describe writes the nodes with their pods in the order of their names, as far as resources are known.
func (r *naiveRoom) describe(resources []v1.ResourceName) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		node := r.nodes[name]
		line := name
		for _, resource := range resources {
			has := r.free(resource, node, true)
			line += fmt.Sprintf(" %s=%d-%d", resource, has, has-r.free(resource, node, false))
		}
		var pods []string
		for _, pod := range r.bound() {
			if pod.Spec.NodeName == name {
				pods = append(pods, fmt.Sprintf("%s:%d:%t:%s", pod.UID, corev1helpers.PodPriority(pod),
					pod.DeletionTimestamp != nil, pod.Labels["app"]))
			}
		}
		slices.Sort(pods)
		out = append(out, line+" "+strings.Join(pods, ","))
	}
	return out
}

// describe writes a copy as naiveRoom does.
func (c *Snapshot) describe() []string {
	var out []string
	for _, n := range c.Nodes {
		line := n.Name
		for i, resource := range c.Resources {
			used := n.Used[i]
			line += fmt.Sprintf(" %s=%d-%d", resource, n.Has[i], used)
			for _, p := range n.Pods {
				for _, u := range p.Uses {
					if u.Resource == i {
						used -= u.Amount
					}
				}
			}
			if used != 0 {
				line += fmt.Sprintf("(%d by no pod)", used)
			}
		}
		var pods []string
		for _, p := range n.Pods {
			pods = append(pods, fmt.Sprintf("%s:%d:%t:%s", p.UID, p.Priority, p.Terminating, p.Of.Name))
		}
		slices.Sort(pods)
		out = append(out, line+" "+strings.Join(pods, ","))
	}
	slices.Sort(out)
	return out
}

// extend appends to each part of a copy, which must not reach the part that follows it.
func (c *Snapshot) extend() {
	for _, n := range c.Nodes {
		_, _, _, _ = append(n.Has, 99), append(n.Used, 99), append(n.Admits, false), append(n.Pods, BoundPod{})
		for _, p := range n.Pods {
			_ = append(p.Uses, use{Amount: 99})
		}
	}
}

// wipe writes to all of a copy.
func (c *Snapshot) wipe() {
	for _, n := range c.Nodes {
		clear(n.Used)
		clear(n.Admits)
		clear(n.Pods)
	}
	clear(c.Shapes)
	clear(c.Resources)
	clear(c.Nodes)
}
