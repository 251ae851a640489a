package demo

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/screen/tables"
)

// Node is what decides about a node, as the scheduler sees it.
type Node struct {
	Name     string                 `json:"name"`
	Model    string                 `json:"model"`
	GPUs     int                    `json:"gpus"`
	Domain   podview.Domain         `json:"domain,omitzero"`
	Capacity priceview.CapacityType `json:"capacityType"`
	// Price of the node per hour.
	Price price.MicroDollars `json:"microDollarsPerHour"`
	// Milli is the GPU taken on it, in thousandths of a GPU.
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

// Pending is one that was not placed.
type Pending struct {
	Workload string `json:"workload"`
	Pods     int    `json:"pods"`
	Why      string `json:"why"`
}

// Check is one claim and whether it is true.
type Check struct {
	Claim string `json:"claim"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
}

// Outcome is what became of the examples.
type Outcome struct {
	Placements []Placement      `json:"placements"`
	Pending    []Pending        `json:"pending"`
	Nodes      map[string]*Node `json:"nodes"`
	Checks     []Check          `json:"checks"`
	// Dir and Kubeconfig of the sandbox, when it stays up.
	Dir        string `json:"dir,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
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

// outcome is what the watch has seen, judged.
func (d *watch) outcome() *Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := &Outcome{Nodes: map[string]*Node{}}
	c := d.configuration
	keys, rules, levels := c.GPUKeys(""), c.CapacityRules(""), c.NetworkLevels("")
	for i := range d.nodes {
		node := &d.nodes[i]
		n := &Node{Name: node.Name, Domain: levels.Narrowest(node), Capacity: rules.TypeOf(node)}
		n.Price, _, _ = priceview.StatedPrice(node)
		if g, _ := keys.ReadGPUNode(node); g != nil {
			n.Model, n.GPUs = g.Model(), g.GPUs()
		}
		o.Nodes[n.Name] = n
	}
	pending := map[string]*Pending{}
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		pod := d.pods[name]
		w, ok := workloadOf(pod)
		if !ok {
			continue
		}
		if pod.Spec.NodeName != "" {
			o.Placements = append(o.Placements, d.placement(w, pod, o.Nodes, keys))
			continue
		}
		if pending[w.name] == nil {
			pending[w.name] = &Pending{Workload: w.name}
		}
		pending[w.name].Pods++
		// Members say the same; one that says nothing yet must not hide what the others say.
		pending[w.name].Why = cmp.Or(pending[w.name].Why, pendingReason(pod))
	}
	for _, w := range slices.Sorted(maps.Keys(pending)) {
		o.Pending = append(o.Pending, *pending[w])
	}
	o.Checks = checks(o)
	return o
}

func (d *watch) placement(w workload, pod *corev1.Pod, nodes map[string]*Node, keys gpuview.Keys) Placement {
	p := Placement{
		Workload: w.name, Pod: pod.Name, Profile: pod.Spec.SchedulerName, Node: pod.Spec.NodeName,
		Devices: gpuview.AssignedDevices(pod), BoundAt: d.boundAt[pod.Name],
	}
	// A request that cannot be read would have kept the pod pending.
	if request, err := keys.PodGPURequest(pod); err == nil {
		p.GPUs, p.Milli = request.Count, request.Milli
	}
	if node := nodes[p.Node]; node != nil {
		node.Milli += p.GPUs * p.Milli
	}
	return p
}

// why tells from the state of the cluster why a node suits the pods of a workload.
func (o *Outcome) why(p Placement) string {
	node := o.Nodes[p.Node]
	switch {
	case node == nil:
		return ""
	case p.GPUs == 0:
		if with := o.companion(p); with != "" {
			return fmt.Sprintf("%s, runs already for %s: adds no node to the bill", node.Capacity, with)
		}
		return fmt.Sprintf("%s, %v per hour", node.Capacity, node.Price)
	case p.Milli < gpu.WholeMilli:
		return fmt.Sprintf("shares GPU %s (%d of 1000 milli-GPU are taken)", joinInts(p.Devices),
			o.takenOn(p.Node, p.Devices))
	default:
		return fmt.Sprintf("%d of its %d GPUs are taken now, %v per hour", node.Milli/gpu.WholeMilli, node.GPUs, node.Price)
	}
}

// companion names another workload whose pods were on the same node before a pod.
func (o *Outcome) companion(p Placement) string {
	for _, other := range o.Placements {
		if other.Node == p.Node && other.Workload != p.Workload && other.BoundAt.Before(p.BoundAt) {
			return other.Workload
		}
	}
	return ""
}

// takenOn is how much is taken of the given devices of a node, in thousandths of one.
func (o *Outcome) takenOn(node string, devices []int) int {
	taken := 0
	for _, p := range o.Placements {
		if p.Node == node && slices.Equal(p.Devices, devices) {
			taken += p.Milli
		}
	}
	return taken
}

func joinInts(values []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]")
}

// WriteTable prints the outcome for a terminal.
func (o *Outcome) WriteTable(out io.Writer) error {
	screen := tables.ScreenOf(out)
	placed := tables.New(screen, tables.Column{Name: "workload"}, tables.Column{Name: "pods", Number: true},
		tables.Column{Name: "profile", Extra: true}, tables.Column{Name: "GPUs each", Number: true},
		tables.Column{Name: "node"}, tables.Column{Name: "model", Extra: true}, tables.Column{Name: "domain", Extra: true},
		tables.Column{Name: "why there"})
	for _, row := range o.rows() {
		placed.Row(row...)
	}
	waiting := tables.New(screen, tables.Column{Name: "workload"}, tables.Column{Name: "pods", Number: true},
		tables.Column{Name: "why"})
	for _, p := range o.Pending {
		waiting.Row(p.Workload, p.Pods, p.Why)
	}
	const titles = "Who went where, and why\n%s\nWhat is pending, and why\n%s\n"
	if _, err := fmt.Fprintf(out, titles, placed, waiting); err != nil {
		return fmt.Errorf("printing the tables: %w", err)
	}
	for _, c := range o.Checks {
		mark := screen.Paint(tables.Green, "ok  ")
		if !c.OK {
			mark = screen.Paint(tables.Red, "FAIL")
		}
		if _, err := fmt.Fprintf(out, "%s  %s: %s\n", mark, c.Claim, c.Found); err != nil {
			return fmt.Errorf("printing the checks: %w", err)
		}
	}
	return nil
}

// rows puts the pods of a workload that share a node, and its devices, on one line.
func (o *Outcome) rows() [][]any {
	var rows [][]any
	left := slices.Clone(o.Placements)
	for len(left) > 0 {
		p, all := left[0], len(left)
		left = slices.DeleteFunc(left, func(other Placement) bool { return same(p, other) })
		node := o.Nodes[p.Node]
		rows = append(rows, []any{p.Workload, all - len(left), p.Profile, amount(p), p.Node, node.Model, node.Domain,
			o.why(p)})
	}
	return rows
}

func same(a, b Placement) bool {
	return a.Workload == b.Workload && a.Node == b.Node && slices.Equal(a.Devices, b.Devices)
}

func amount(p Placement) string {
	switch {
	case p.GPUs == 0:
		return "none"
	case p.Milli < gpu.WholeMilli:
		return fmt.Sprintf("%.1f", float64(p.Milli)/gpu.WholeMilli)
	default:
		return fmt.Sprint(p.GPUs)
	}
}
