// Package gpuaware is the plugin that places GPU work where it leaves the least GPU stranded.
//
// A pod goes only to a node with the GPUs it asks for: enough of them free, of an accepted model, with enough memory
// and the links asked for, shared or exclusive as it wants. Among those, the node is best on which the placement is
// expected to waste the least GPU, judged by the mix of pods that run. On nodes that share GPUs
// the plugin also chooses the device, tells it to the pod in the dialect in which the pod asked, and never promises a
// share twice.
//
// The rules are pure functions of package gpu, in five files: fit.go (what fits, and why not), choose.go (which devices
// of a node that shares them), waste.go (what a placement wastes, term by term), demand.go (the work that is expected)
// and stranding.go (what of a node that work would leave unused). This package fetches what they ask for. The rules of
// CostOptimized are in price/cost.go and price/split.go (what a pod costs on a node), priceview/spot.go and
// priceview/capacity.go (who may run on spot capacity) and costoptimized/score.go (how costs become scores).
package gpuaware
