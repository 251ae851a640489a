// Package reservation decides who may use what until when: it keeps capacity for gangs, and turns other pods away from
// it.
//
// Holds is the one owner of what is kept: for what pods were evicted, for members that were lost, and for gangs that
// have waited for long. The plugin asks it in Filter and Reserve whether a pod may use a node; it wakes the pods that
// it turned away when something is let go. Reservations decides for which waiting gangs something is kept, and where;
// the loop of gangs calls it once a second at most. Neither places nor evicts a pod, and neither writes to the API
// server.
package reservation
