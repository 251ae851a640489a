// Package starttime decides on which nodes waiting gangs start the soonest, when that is, and which pods may use the
// nodes until then.
//
// The caller feeds it the nodes with forecasts of the ends of their pods, and the waiting gangs in the order of the queue.
// The Board answers with a reservation for each gang, one behind the other, of which the first few are held: their nodes
// are kept, and MayEnter says which pods may enter nevertheless. It remembers what it said before, so that the choice of
// nodes does not flutter, and a start that slips again and again becomes firm. It knows no Kubernetes and no clock, and
// neither evicts nor places a pod.
package starttime
