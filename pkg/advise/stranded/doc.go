// Package stranded finds requests for so much CPU or memory with each GPU that other GPUs of the node are left without.
//
// Package advise shows them. They are arithmetic on a snapshot of nodes and pods, and no run of the scheduler. Nothing
// is kept and nothing is written.
package stranded
