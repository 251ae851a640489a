package costoptimized

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/priceview"
)

// bill is what the cluster costs in an hour, by the prices of one profile.
type bill struct {
	byCapacity map[priceview.CapacityType]price.MicroDollars
	// inUse is the price of the nodes that some pod keeps.
	inUse price.MicroDollars
	// idleGPU is the price of the GPUs that no pod has, and stranded the part of it that no pod can use for want of CPU
	// or memory beside it.
	idleGPU, strandedGPU price.MicroDollars
	unpriced             int
}

func (b *bill) total() price.MicroDollars {
	var sum price.MicroDollars
	for _, p := range b.byCapacity {
		sum = sum.Plus(p)
	}
	return sum
}

// biller makes bills out of the informers' caches.
type biller struct {
	settings *settings
	nodes    *nodeViews
	nodeList corelisters.NodeLister
	podList  corelisters.PodLister
}

func (b *biller) bill() (*bill, error) {
	nodes, err := b.nodeList.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	pods, err := b.podList.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	byNode := map[string][]*v1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		}
	}
	sum := &bill{byCapacity: map[priceview.CapacityType]price.MicroDollars{}}
	for _, t := range priceview.CapacityTypes() {
		sum.byCapacity[t] = 0
	}
	for _, node := range nodes {
		info := framework.NewNodeInfo(byNode[node.Name]...)
		info.SetNode(node)
		b.add(sum, b.nodes.of(node), info)
	}
	return sum, nil
}

func (b *biller) add(sum *bill, view *nodeView, info *framework.NodeInfo) {
	if !view.priced {
		sum.unpriced++
		return
	}
	sum.byCapacity[view.capacity] = sum.byCapacity[view.capacity].Plus(view.split.Price)
	if podview.InUse(info) {
		sum.inUse = sum.inUse.Plus(view.split.Price)
	}
	if view.offers.Allocatable.MilliGPU == 0 {
		return
	}
	free := priceview.FreeHost(info)
	free.MilliGPU = b.nodes.freeGPU(view, info)
	sum.idleGPU = sum.idleGPU.Plus(view.split.GPUPrice(free.MilliGPU))
	sum.strandedGPU = sum.strandedGPU.Plus(view.split.GPUPrice(b.settings.hostNeed.Idle(free)))
}
