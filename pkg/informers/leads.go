package informers

import "sync/atomic"

// elected asks whether this process leads; nil where no leader election is run.
var elected atomic.Pointer[func() bool]

// Elected notes that this process runs a leader election, and how to ask whether it leads. Call it before plugins are
// made. A process that has not called it runs none.
func Elected(leads func() bool) { elected.Store(&leads) }

// Leads tells whether this process leads, and whether there is an election. Those that do not lead run all informers as
// well, and must not write.
func Leads() (leads, running bool) {
	ask := elected.Load()
	if ask == nil {
		return false, false
	}
	return (*ask)(), true
}
