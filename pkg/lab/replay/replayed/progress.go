package replayed

import "sync/atomic"

// Progress counts what a running replay has done. It may be read from any goroutine.
type Progress struct {
	offered, total atomic.Int64
}

// Read returns how many of the total pods have been placed or, in ArrivalOrder, tried.
func (p *Progress) Read() (offered, total int64) { return p.offered.Load(), p.total.Load() }

// Offer counts pods that have been placed or tried.
func (p *Progress) Offer(pods int) { p.offered.Add(int64(pods)) }

// Await sets how many pods there are.
func (p *Progress) Await(total int) { p.total.Store(int64(total)) }
