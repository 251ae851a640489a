package informers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// leadingEvery is how often a scheduler that waits to lead checks whether it does.
const leadingEvery = 200 * time.Millisecond

// Leader knows whether a scheduler leads.
type Leader interface{ Leads() bool }

// Election knows whether the scheduler of a factory leads. Without a leader election, the zero value, it does. Replicas
// that do not lead run all informers as well, and must not write.
type Election struct{ leader Leader }

// Elect sets the Leader of the factory's scheduler. Call it before plugins are made.
func Elect(factory informers.SharedInformerFactory, leader Leader) {
	_, _ = Shared(factory, func() (Election, error) { return Election{leader}, nil })
}

// ElectionOf returns the election of the scheduler of the factory.
func ElectionOf(factory informers.SharedInformerFactory) Election {
	election, _ := Shared(factory, func() (Election, error) { return Election{}, nil })
	return election
}

// Leads reports whether the scheduler leads.
func (e Election) Leads() bool { return e.leader == nil || e.leader.Leads() }

// AwaitLead returns true once the informers have synced and the scheduler leads, false if ctx is done before.
func (e Election) AwaitLead(ctx context.Context, informers ...cache.DoneChecker) bool {
	return cache.WaitFor(ctx, "", informers...) && wait.PollUntilContextCancel(ctx, leadingEvery, true,
		func(context.Context) (bool, error) { return e.Leads(), nil }) == nil
}
