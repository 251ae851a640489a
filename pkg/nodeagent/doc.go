// Package nodeagent tells the scheduler how the GPUs of its node are connected, which only the node's driver knows.
// cmd/node-agent runs it on each node.
//
// It asks nvidia-smi and writes one annotation of its own Node object when the answer has changed. Where nothing can be
// read, and when the agent stops, the annotation stays: links change with the hardware. It never writes anything else.
package nodeagent
