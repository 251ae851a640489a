package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/plural"
)

// gangWindow bounds the time between the bindings of a gang, which are separate requests: milliseconds, or seconds on a
// busy machine. A gang that is bound only in part would exceed it.
const gangWindow = time.Minute

// checks verifies the claims about the outcome.
func checks(o *Outcome) []Check {
	of := func(workload string) []Placement {
		return slices.DeleteFunc(slices.Clone(o.Placements), func(p Placement) bool { return p.Workload != workload })
	}
	return []Check{
		checkTraining(o, of("ml-training")),
		checkBatch(o, of("batch-processing")),
		checkGang(of("gang-training")),
		checkPacking(o),
		checkInference(of("inference-shared")),
		checkTooLarge(o, of("gang-too-large")),
	}
}

func checkTraining(o *Outcome, pods []Placement) Check {
	c := Check{Claim: "ml-training runs on four linked GPUs of one node"}
	if len(pods) != 1 {
		c.Found = plural.Of(len(pods), "pod") + " placed, not 1"
		return c
	}
	node := o.Nodes[pods[0].Node]
	product, _ := catalog.Lookup(node.Model)
	c.OK = product.NVLinkMesh && pods[0].GPUs == 4
	c.Found = fmt.Sprintf("on %s, %d × %s", node.Name, node.GPUs, node.Model)
	return c
}

// checkBatch expects the Job on nodes that are in use already: starting a cheaper node would add to the bill.
func checkBatch(o *Outcome, pods []Placement) Check {
	c := Check{Claim: "batch-processing adds no node to the bill", OK: len(pods) == 4}
	with := map[string]int{}
	for _, p := range pods {
		companion := o.companion(p)
		with[cmp.Or(companion, "none")]++
		c.OK = c.OK && companion != ""
	}
	c.Found = fmt.Sprintf("%d of 4 pods, on nodes shared with %s", len(pods), strings.TrimPrefix(fmt.Sprint(with), "map"))
	return c
}

// companion is an earlier workload with a pod on the same node, empty if there is none. Placements are in the order of
// creation.
func (o *Outcome) companion(p Placement) string {
	for _, other := range o.Placements {
		switch {
		case other.Workload == p.Workload:
			return ""
		case other.Node == p.Node:
			return other.Workload
		}
	}
	return ""
}

func checkGang(pods []Placement) Check {
	c := Check{Claim: "gang-training starts as a whole"}
	if len(pods) == 0 {
		c.Found = "0 of 8 pods bound"
		return c
	}
	byTime := func(a, b Placement) int { return a.BoundAt.Compare(b.BoundAt) }
	window := slices.MaxFunc(pods, byTime).BoundAt.Sub(slices.MinFunc(pods, byTime).BoundAt)
	c.OK = len(pods) == 8 && window <= gangWindow
	c.Found = fmt.Sprintf("%d of 8 pods bound, the last %v after the first", len(pods), window.Round(time.Millisecond))
	return c
}

// checkPacking counts the 8-GPU nodes that are partly used. With nine pods of four GPUs there is at least one.
func checkPacking(o *Outcome) Check {
	c := Check{Claim: "at most one node of eight GPUs is left half empty"}
	var partly []string
	for _, node := range o.Nodes {
		if node.GPUs == 8 && node.Milli > 0 && node.Milli < 8*gpu.WholeMilli {
			partly = append(partly, node.Name)
		}
	}
	slices.Sort(partly)
	c.OK = len(partly) <= 1
	c.Found = fmt.Sprintf("half empty are %v", partly)
	return c
}

// checkInference expects the six shares of 0.3 on two GPUs, none of them overcommitted.
func checkInference(pods []Placement) Check {
	c := Check{Claim: "inference-shared fills two GPUs, three pods each, and none is given more than it has",
		OK: len(pods) == 6}
	taken := map[string]int{}
	for _, p := range pods {
		if len(p.Devices) != 1 {
			c.Found = fmt.Sprintf("pod %s has the devices %v, not one", p.Pod, p.Devices)
			c.OK = false
			return c
		}
		taken[fmt.Sprintf("%s GPU %d", p.Node, p.Devices[0])] += p.Milli
	}
	for _, milli := range taken {
		c.OK = c.OK && milli <= gpu.WholeMilli
	}
	c.OK = c.OK && len(taken) == 2
	c.Found = fmt.Sprintf("%d of 6 pods, thousandths taken: %s", len(pods), strings.TrimPrefix(fmt.Sprint(taken), "map"))
	return c
}

func checkTooLarge(o *Outcome, placed []Placement) Check {
	c := Check{Claim: "gang-too-large waits as a whole, holds nothing and says what is missing"}
	c.Found = fmt.Sprintf("%d of its pods placed", len(placed))
	for _, p := range o.Pending {
		if p.Workload == "gang-too-large" {
			c.OK = len(placed) == 0 && p.Pods == 24 && strings.Contains(p.Why, "24")
			c.Found += fmt.Sprintf(", %d pending, all that came after it was placed", p.Pods)
		}
	}
	return c
}
