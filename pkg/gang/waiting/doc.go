// Package waiting knows what waits for capacity, and decides who is tried next.
//
// List has the gangs that wait to be planned, with what the account of free capacity has to know of them. Queue says
// which gang is tried next after what may help it, Pace keeps long plans from delaying others. Backlog has the pods
// that are tried alone and for which no node has room. Inbox collects what happens, from any goroutine, until the loop
// takes it.
//
// The loop of the Coscheduling plugin tells it what has happened, asks it who is next, and acts on what it returns.
// Nothing here runs a scheduling cycle or writes to the API. Time is an argument.
package waiting
