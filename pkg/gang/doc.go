// Package gang decides when the pods of a gang may start, in which order gangs come, and which node each member gets.
//
// Ledger owns what is known of every gang: its members and their stages, its minimum, its plan, and why it is blocked.
// Observations may be repeated, so the ledger can be rebuilt from them at any moment. Handlers of informers call the
// Ledger, scheduling cycles its Cycles, the loop its Agenda, and the evictor its Evictions. The loop carries out the
// Effects that they return.
//
// The package never calls Kubernetes or a clock: nodes are names, and the time is an argument. Read stage.go, run.go,
// purpose.go and settle.go first.
package gang
