// Package gpuaware is the plugin that places GPU work where it leaves the least GPU stranded.
//
// A pod goes only to a node with the GPUs it asks for: enough of them free, of an accepted model, with enough memory
// and the links asked for, shared or exclusive as it wants. Among those, the node is best on which the placement is
// expected to waste the least GPU, judged by the mix of pods that run. On nodes that share GPUs the plugin also chooses
// the device, writes it to the pod in the dialect in which the pod asked, and never assigns a share twice.
//
// The rules are pure functions of package gpu; this package fetches what they ask for.
package gpuaware
