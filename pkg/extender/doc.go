// Package extender serves the plugins of this distribution behind the HTTP extender protocol, for clusters whose
// scheduler cannot be replaced: filter and prioritize, by the names of nodes. cmd/extender runs it.
//
// It decides with the plugins themselves, in a scheduler of one profile that is never run: its informers feed its
// cache, and each request takes a snapshot and calls the framework's own phases.
//
// It learns of a pod when it is bound, later than the scheduler that calls, whose NodeResourcesFit keeps the count of
// GPUs safe. Nothing does that for shares: nodes that share their GPUs are refused for pods with GPUs. It writes
// nothing but events, and keeps nothing between requests: any replica answers.
package extender
