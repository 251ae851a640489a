package informers

import (
	"context"
	"sync"
	"sync/atomic"
)

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

// handovers holds what is done before this process gives its lease back.
var handovers struct {
	mu sync.Mutex
	do []func(context.Context)
}

// BeforeHandover has something done before this process gives its lease back. It must end soon: no scheduler works
// meanwhile.
func BeforeHandover(do func(context.Context)) {
	handovers.mu.Lock()
	defer handovers.mu.Unlock()
	handovers.do = append(handovers.do, do)
}

// HandOver does what is to be done before this process gives its lease back.
func HandOver(ctx context.Context) {
	handovers.mu.Lock()
	defer handovers.mu.Unlock()
	for _, do := range handovers.do {
		do(ctx)
	}
}
