// Package faults reads which hardware fails, and remembers it: nodes that leave, devices that the kubelet of a pod
// calls unhealthy, and GPUs that the agent of a node does.
//
// The informers of Coscheduling tell the Book, and the evictor asks it what fails under members of gangs; advice reads
// nodes without a Book. What is done about a fault is decided in the evictor.
package faults
