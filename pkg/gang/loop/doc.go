// Package loop decides when each gang that waits is tried, and carries out what follows.
//
// Loop takes what has happened from waiting.Inbox, brings the list of what waits up to date, and invites gangs to plan:
// a new one at once, a blocked one after something that can help it. Executor carries out the effects that the ledger
// of gangs returns. HeldPods stands before kube-scheduler's queue, keeps the members that wait out of it, and wakes
// pods where no event of the queue does.
//
// The coscheduling plugin writes to the inbox and calls Executor and HeldPods from its cycles; nothing here runs within
// a cycle otherwise. Which gangs may fit, who is next and what is kept is asked of waiting and hold.
package loop
