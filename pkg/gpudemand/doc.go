// Package gpudemand learns what GPU work a cluster has, and which capacity that work shares.
//
// GPUAware tells its Learner of pods that are given a node or leave one, and of nodes that change, from the informers;
// a scheduling cycle reads what was last drawn up and the NVLink domains of a pod's siblings. The decisions are those
// of the pure packages gpu/mix and gpu/fleet: this one reads objects into their values. It reads no claim under its
// lock, and never draws anything up within a cycle.
package gpudemand
