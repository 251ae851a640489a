// Package topology arranges a group of pods on nodes that lie in nested domains: blocks of racks of NVLink cliques,
// for example. Arrange says in which domains to try a gang, and in which order; Distances and Tally how far a pod is
// from those it talks to.
//
// The dry run of gangs calls Arrange, the plugin NetworkTopology the others. The package knows levels and numbers only:
// the caller knows which label makes a level and what fits on a node. It keeps no state.
package topology
