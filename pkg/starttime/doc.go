// Package starttime decides on which nodes waiting gangs start the soonest, when that is, and which pods may use the
// nodes until then.
//
// Its caller feeds it with nodes, with forecasts of package runtimes for their pods, and with the waiting gangs in the
// order of the queue. Board answers with a reservation for each gang. The nodes of the first few are held, and MayEnter
// says which pods may enter nevertheless. Board remembers its last answer, so that the choice of nodes does not
// flutter, and a start that slips again and again becomes firm.
//
// It knows no Kubernetes and no clock, and neither evicts nor places a pod.
package starttime
