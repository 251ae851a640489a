package replay

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/priceview"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/treeview"
)

// tenancy collects which pod had which part of a node. The methods of a nil one do nothing.
type tenancy struct {
	trees  *treeview.Trees
	by     showback.By
	keys   gpuview.Keys
	offers map[string]priceview.Node
	nodes  []showback.Node
	uses   []*showback.Use
}

// newTenancy divides the prices of nodes by rates.
func newTenancy(c *cluster, rates price.Rates) *tenancy {
	t := &tenancy{trees: c.trees, by: *c.options.Showback, keys: c.ledger.keys, offers: map[string]priceview.Node{}}
	for _, obj := range c.api.List(nodeResource) {
		node := obj.(*v1.Node)
		offer := priceview.ReadNode(&t.keys, node)
		amount, priced := c.ledger.priceOf(node)
		t.offers[node.Name] = offer
		t.nodes = append(t.nodes, showback.Node{Name: node.Name, Split: price.NewSplit(amount, offer.Allocatable, rates),
			Priced: priced})
	}
	return t
}

// begin notes that a pod has its node.
func (t *tenancy) begin(p *podState, pod *v1.Pod, now time.Time) {
	if t == nil || p.held == nil {
		return
	}
	offer, asked := t.offers[pod.Spec.NodeName], priceview.ReadPod(&t.keys, pod)
	of := showback.Pod{Namespace: pod.Namespace, Labels: pod.Labels}
	if m, err := t.trees.GangOf(pod); err == nil {
		of.Gang = m.ID.Name
	}
	p.use = &showback.Use{Node: pod.Spec.NodeName, Key: t.by.Key(of), From: now, Request: offer.Request(&asked),
		KeepsNode: p.held.counted}
	t.uses = append(t.uses, p.use)
}

// end notes that it no longer has it.
func (t *tenancy) end(p *podState, now time.Time) {
	if t != nil && p.use != nil {
		p.use.To = now
		p.use = nil
	}
}

var errNothingEnds = errors.New(
	"nothing in the input ends, so there is no time to pay for; a horizon, such as 720h, says for how long")

// showback divides the bill: of the horizon, if there is one, else of the time until nothing comes of the work any
// more.
func (c *cluster) showback(out *replayed.Result) error {
	if c.tenancy == nil {
		return nil
	}
	to := c.progress
	if c.options.Horizon > 0 {
		to = c.start.Add(c.options.Horizon)
	} else if c.longest == 0 {
		return inputError{errNothingEnds}
	}
	// The odd nanoseconds of the start are no part of it.
	odd := -time.Duration(c.start.Nanosecond() % 1000)
	uses := make([]showback.Use, len(c.tenancy.uses))
	for i, use := range c.tenancy.uses {
		uses[i] = *use
		uses[i].From = use.From.Add(odd)
		if !use.To.IsZero() {
			uses[i].To = use.To.Add(odd)
		}
	}
	statement, err := showback.Account(c.start.Add(odd), to.Add(odd), c.tenancy.nodes, uses)
	if err != nil {
		return inputError{err}
	}
	statement.Source, statement.Input, statement.By = "replay", out.Input, c.tenancy.by.String()
	statement.Notes = append(statement.Notes, out.Notes...)
	out.Showback = statement
	return nil
}
