package stranded

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/priceview"
)

// Request is a request for so much CPU or memory with each GPU that other GPUs of the node are left without.
type Request struct {
	// Owner is the kind and name of the controller, or the pod itself.
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	// Pods is how many pods of the owner have the request, and Pending how many of them wait.
	Pods    int `json:"pods"`
	Pending int `json:"pending"`
	// Resource is cpu or memory. Requested is what a pod asks for, Largest what it could ask for without stranding a GPU.
	Resource  string `json:"resource"`
	Requested string `json:"requested"`
	Largest   string `json:"largest"`
	// GPUs is how many thousandths of a GPU a pod asks for.
	MilliGPU int64 `json:"milliGPU"`
	// PerGPU is what a pod asks for with each GPU, and NodePerGPU what the node has for each.
	PerGPU     string `json:"perGPU"`
	NodePerGPU string `json:"nodePerGPU"`
	// Kind is the kind of node.
	Kind string `json:"kind"`
	// Stranded is how many GPUs of the nodes on which the pods run are free and have no share of the resource left. Of
	// pods that wait, it is how many of a node full of such pods would be.
	Stranded int64 `json:"stranded"`
}

// host is a node with what is free of it.
type host struct {
	keys        *gpuview.Keys
	priced      priceview.Node
	kind        string
	allocatable price.Capacity // without what pods of the node itself take
	free        price.Capacity
}

func less(a, b price.Capacity) price.Capacity {
	return price.Capacity{MilliCPU: a.MilliCPU - b.MilliCPU, MemoryMiB: a.MemoryMiB - b.MemoryMiB,
		MilliGPU: a.MilliGPU - b.MilliGPU}
}

// amounts are the resources that GPUs need, with how they are written.
var amounts = []struct {
	name  string
	of    func(price.Capacity) int64
	round int64
	write func(int64) string
}{
	{"cpu", func(c price.Capacity) int64 { return c.MilliCPU }, 100,
		func(n int64) string { return fmt.Sprintf("%dm", n) }},
	{"memory", func(c price.Capacity) int64 { return c.MemoryMiB }, 256,
		func(n int64) string { return fmt.Sprintf("%dMi", n) }},
}

// Requests looks for pods that take more than the share of their GPUs, where that leaves GPUs of the node without.
func Requests(keys *gpuview.Keys, nodes []*v1.Node, pods []*v1.Pod) []Request {
	hosts := hostsOf(keys, nodes, pods)
	found, on := map[Request]*Request{}, map[Request]map[string]bool{}
	for _, pod := range pods {
		if podview.Finished(pod) || podview.BelongsToNode(pod) {
			continue
		}
		name := pod.Spec.NodeName
		h := hosts[name]
		if name == "" {
			h = emptiest(keys, pod, hosts)
		}
		if h == nil {
			continue
		}
		for i := range amounts {
			r, stranded := judge(pod, h, i, name == "")
			if r == nil {
				continue
			}
			if found[*r] == nil {
				kept := *r
				found[*r], on[*r] = &kept, map[string]bool{}
			}
			found[*r].Pods++
			if name == "" {
				found[*r].Pending++
				found[*r].Stranded = max(found[*r].Stranded, stranded)
			} else if !on[*r][name] {
				on[*r][name] = true
				found[*r].Stranded += stranded
			}
		}
	}
	all := make([]Request, 0, len(found))
	for _, r := range found {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(b.Stranded, a.Stranded), cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Owner, b.Owner),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Requested, b.Requested),
			cmp.Compare(a.Pending, b.Pending))
	})
	return all
}

// hostsOf are the nodes with whole GPUs.
func hostsOf(keys *gpuview.Keys, nodes []*v1.Node, pods []*v1.Pod) map[string]*host {
	hosts := map[string]*host{}
	for _, node := range nodes {
		priced := priceview.ReadNode(keys, node)
		if priced.Allocatable.MilliGPU == 0 || podview.Leaving(node) {
			continue
		}
		hosts[node.Name] = &host{keys: keys, priced: priced, kind: KindOf(node, priced.GPUNode()),
			allocatable: priced.Allocatable, free: priced.Allocatable}
	}
	for _, pod := range pods {
		h := hosts[pod.Spec.NodeName]
		if h == nil || podview.Finished(pod) {
			continue
		}
		taken := h.asked(pod)
		h.free = less(h.free, taken)
		if podview.BelongsToNode(pod) {
			h.allocatable = less(h.allocatable, taken)
		}
	}
	return hosts
}

func (h *host) asked(pod *v1.Pod) price.Capacity {
	p := priceview.ReadPod(h.keys, pod)
	return h.priced.Request(&p)
}

// emptiest is a node of the kind, of those with GPUs that the pod accepts and enough of them, that has most CPU for
// each GPU.
func emptiest(keys *gpuview.Keys, pod *v1.Pod, hosts map[string]*host) *host {
	request, err := keys.PodGPURequest(pod)
	if err != nil || !request.WantsGPU() {
		return nil
	}
	var best *host
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		h := hosts[name]
		if !request.AcceptsModel(h.priced.GPUNode().Model()) || h.asked(pod).MilliGPU > h.allocatable.MilliGPU {
			continue
		}
		if best == nil ||
			h.allocatable.MilliCPU*best.allocatable.MilliGPU > best.allocatable.MilliCPU*h.allocatable.MilliGPU {
			best = h
		}
	}
	return best
}

// judge returns the request if the pod asks for more of the resource than the share of its GPUs and GPUs are stranded,
// and how many.
func judge(pod *v1.Pod, h *host, resource int, waiting bool) (*Request, int64) {
	a, asked := amounts[resource], h.asked(pod)
	has, wants, gpus := a.of(h.allocatable), a.of(asked), h.allocatable.MilliGPU
	if asked.MilliGPU <= 0 || has <= 0 || wants*gpus <= has*asked.MilliGPU {
		return nil, 0
	}
	freeGPU, free := h.free.MilliGPU, a.of(h.free)
	if waiting {
		n := min(has/wants, gpus/asked.MilliGPU)
		freeGPU, free = gpus-n*asked.MilliGPU, has-n*wants
	}
	// What is left serves this number of GPUs at the share of the node.
	stranded := (freeGPU - max(free, 0)*gpus/has) / gpu.WholeMilli
	if stranded < 1 && (!waiting || wants <= has) {
		return nil, 0
	}
	owner := "Pod " + pod.Name
	if c := metav1.GetControllerOf(pod); c != nil {
		owner = c.Kind + " " + c.Name
	}
	perGPU := func(amount, milliGPU int64) string { return a.write(amount * gpu.WholeMilli / milliGPU) }
	largest := has * asked.MilliGPU / gpus
	return &Request{
		Owner: owner, Namespace: pod.Namespace, Resource: a.name, Requested: a.write(wants),
		Largest: a.write(largest - largest%a.round), MilliGPU: asked.MilliGPU,
		PerGPU: perGPU(wants, asked.MilliGPU), NodePerGPU: perGPU(has, gpus), Kind: h.kind,
	}, stranded
}

// KindOf names the kind of a node: by its instance type where it says one, else by what it has.
func KindOf(node *v1.Node, gpus *gpuview.Node) string {
	if name := node.Labels[v1.LabelInstanceTypeStable]; name != "" {
		return name
	}
	size := podview.NodeSize(node)
	if gpus.GPUs() == 0 {
		return size
	}
	return fmt.Sprintf("%d × %s, %s", gpus.GPUs(), cmp.Or(gpus.Model(), "GPU"), size)
}
