package process

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Scorer is a score plugin whose raw score stands for a cost, which is a sum of named terms.
type Scorer interface {
	fwk.ScorePlugin
	// Terms returns the cost that Score returns for the same arguments, term by term. It has no terms where the score is
	// not a cost: a node may have no price.
	Terms(ctx context.Context, cycle fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (Cost, error)
}

// Cost is what a placement costs. Less is better.
type Cost struct {
	// Unit of all amounts.
	Unit string
	// Terms in an order that is the same for all nodes, those that are zero included.
	Terms []Term
}

// Term is a part of a cost.
type Term struct {
	// Name is one or two words that stay the same from release to release.
	Name string `json:"name"`
	// Amount may be negative: a gain.
	Amount float64 `json:"amount"`
	// For is a noun phrase that says what is charged.
	For string `json:"-"`
}
