// Package hold decides who may use what until when: it keeps capacity for gangs, and turns other pods away from
// it.
//
// Holds is the one owner of what is kept: for what pods were evicted, for members that were lost, and for the gang that
// has waited the longest. The plugin asks its Gate in Filter and Reserve whether a pod may use a node; TurnedAway wakes
// the pods that were refused when something is let go. Reservations decides for which waiting gang something is kept,
// where, and until when, by what Search finds; the loop of gangs calls it once a second at most. Nothing here places or
// evicts a pod, or writes to the API server.
package hold
