// Package gang decides when the pods of a gang may start, in which order gangs come, and which node each member gets.
//
// Ledger owns what is known of every gang: its members and their stages, its minimum, its plan, and why it is blocked.
// It is fed with observations that may be repeated, answers in constant time, and can be rebuilt from observations at
// any moment. Reasons say why a gang or a member does not start; they stay values until a user is told.
//
// Handlers of informers tell the Ledger, scheduling cycles its Cycles, the loop its Agenda, and the evictor its
// Evictions; the Effects that they return are carried out by the loop. The package never calls Kubernetes or a clock:
// members are identities with a state, nodes are names, and the time is an argument. Read stage.go, run.go, turn.go and
// settle.go first.
package gang
