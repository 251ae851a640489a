// Package runview reads what pods and their groups say of how long they run and by when they are to end, and when they
// started. It reads objects only: what is learned of run times is pkg/runtimes', and who asks is the room of
// reservations.
package runview
