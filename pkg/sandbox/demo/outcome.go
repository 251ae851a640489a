package demo

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/pkg/screen/top"
)

// Node are the properties of a node that the scheduler considers.
type Node struct {
	Name     string                 `json:"name"`
	Model    string                 `json:"model"`
	GPUs     int                    `json:"gpus"`
	Domain   podview.Domain         `json:"domain,omitzero"`
	Capacity priceview.CapacityType `json:"capacityType"`
	// Price of the node per hour.
	Price price.MicroDollars `json:"microDollarsPerHour"`
	// Milli is the allocated part of its GPUs, in thousandths of a GPU.
	Milli int `json:"takenMilliGPU"`
}

// Placement is one pod and its node.
type Placement struct {
	Workload string `json:"workload"`
	Pod      string `json:"pod"`
	Profile  string `json:"profile"`
	Node     string `json:"node"`
	// GPUs and Milli are the pod's request: GPUs times thousandths of each.
	GPUs  int `json:"gpus"`
	Milli int `json:"milliGPU"`
	// Devices are the indices that the scheduler chose on a shared node.
	Devices []int     `json:"devices"`
	BoundAt time.Time `json:"boundAt"`
}

// Pending is a workload with pending pods.
type Pending struct {
	Workload string `json:"workload"`
	Pods     int    `json:"pods"`
	Why      string `json:"why"`
}

// Check is one claim, whether it is true, and what was found.
type Check struct {
	Claim string `json:"claim"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

// Outcome is the result of the examples. Placements are in the order in which the workloads were created.
type Outcome struct {
	Placements []Placement      `json:"placements"`
	Pending    []Pending        `json:"pending"`
	Nodes      map[string]*Node `json:"nodes"`
	Checks     []Check          `json:"checks"`
	// Dir and Kubeconfig of the sandbox, when it stays up.
	Dir        string `json:"dir,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// cluster is the same as berth status and berth jobs see it.
	cluster *overview.Cluster
}

func (o *Outcome) failed() int {
	n := 0
	for _, c := range o.Checks {
		if !c.OK {
			n++
		}
	}
	return n
}

// outcome reads the cluster and checks it.
func (c cluster) outcome(ctx context.Context) (*Outcome, error) {
	configuration, err := schedulerconfig.Shipped()
	if err != nil {
		return nil, err
	}
	prices, rates, err := configuration.Prices("")
	if err != nil {
		return nil, err
	}
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return nil, err
	}
	keys, levels := configuration.GPUKeys(""), configuration.NetworkLevels()
	store := overview.NewStore(keys, overview.Pricing{Of: prices, Rates: rates}, levels)
	reader, err := inputs.NewReader(c.config)
	if err != nil {
		return nil, err
	}
	if err := store.Read(ctx, reader, corev1.NamespaceDefault); err != nil {
		return nil, err
	}
	o := &Outcome{Nodes: map[string]*Node{}, cluster: store.Cluster(time.Now())}
	rules := configuration.CapacityRules("")
	for i := range nodes.Items {
		node := &nodes.Items[i]
		n := &Node{Name: node.Name, Domain: levels.Narrowest(node), Capacity: rules.TypeOf(node)}
		n.Price, _, _ = priceview.StatedPrice(node)
		if g, _ := keys.ReadGPUNode(node); g != nil {
			n.Model, n.GPUs = g.Model(), g.GPUs()
		}
		o.Nodes[n.Name] = n
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	o.addPods(pods, keys)
	o.Checks = checks(o)
	return o, nil
}

// addPods adds the placed and the pending pods by workload.
func (o *Outcome) addPods(pods []corev1.Pod, keys gpuview.Keys) {
	for _, w := range workloads {
		waiting := Pending{Workload: w.name}
		for i := range pods {
			pod := &pods[i]
			switch {
			case !w.has(pod):
			case pod.Spec.NodeName != "":
				o.place(w, pod, keys)
			default:
				waiting.Pods++
				// All members have the same reason, but some may not have it yet.
				waiting.Why = cmp.Or(waiting.Why, pendingReason(pod))
			}
		}
		if waiting.Pods > 0 {
			o.Pending = append(o.Pending, waiting)
		}
	}
}

// place adds a pod that has a node.
func (o *Outcome) place(w workload, pod *corev1.Pod, keys gpuview.Keys) {
	p := Placement{Workload: w.name, Pod: pod.Name, Profile: pod.Spec.SchedulerName, Node: pod.Spec.NodeName,
		Devices: gpuview.AssignedDevices(pod)}
	// The API server sets the condition when it binds the pod.
	if _, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); c != nil {
		p.BoundAt = c.LastTransitionTime.Time
	}
	// A request that cannot be read would have kept the pod pending.
	if request, err := keys.PodGPURequest(pod); err == nil {
		p.GPUs, p.Milli = request.Count, request.Milli
	}
	if node := o.Nodes[p.Node]; node != nil {
		node.Milli += p.GPUs * p.Milli
	}
	o.Placements = append(o.Placements, p)
}

// WriteTable prints the outcome: the cluster as in berth status and berth jobs, and the checks.
func (o *Outcome) WriteTable(out io.Writer) error {
	screen, c := tables.ScreenOf(out), o.cluster
	fmt.Fprintln(out, screen.Wrap(strings.Join(c.Lines(), "\n"))+"\n")
	if err := top.Jobs(out, &overview.JobList{Jobs: c.Jobs, Queues: c.Queues, LeftOut: c.LeftOut}); err != nil {
		return err
	}
	var b strings.Builder
	for _, check := range o.Checks {
		mark := screen.Paint(tables.Green, "ok  ")
		if !check.OK {
			mark = screen.Paint(tables.Red, "FAIL")
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", mark, check.Claim, check.Found)
	}
	if _, err := io.WriteString(out, "\n"+b.String()); err != nil {
		return fmt.Errorf("printing the checks: %w", err)
	}
	return nil
}
