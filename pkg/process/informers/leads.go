package informers

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// leadingEvery is how often a process that waits to lead looks whether it does.
const leadingEvery = 200 * time.Millisecond

// elected asks whether this process leads; nil where no leader election is run.
var elected atomic.Pointer[func() bool]

// Elected notes that this process runs a leader election, and how to ask whether it leads. Call it before plugins are
// made.
func Elected(leads func() bool) { elected.Store(&leads) }

// Leads reports whether this process leads; one that runs no leader election does. Those that do not lead run all
// informers as well, and must not write.
func Leads() bool {
	ask := elected.Load()
	return ask == nil || (*ask)()
}

// AwaitLead returns true once the informers have synced and this process leads, false if ctx is done before.
func AwaitLead(ctx context.Context, informers ...cache.DoneChecker) bool {
	return cache.WaitFor(ctx, "", informers...) && wait.PollUntilContextCancel(ctx, leadingEvery, true,
		func(context.Context) (bool, error) { return Leads(), nil }) == nil
}
