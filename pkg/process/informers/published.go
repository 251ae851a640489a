package informers

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Collector is state that metrics show.
type Collector interface {
	Collect(ch chan<- metrics.Metric)
}

// Published exports state that the profiles of a scheduler share as metrics while the scheduler runs. The metrics are
// computed only when they are read.
type Published struct {
	metrics.BaseStableCollector

	register     sync.Once
	state        atomic.Pointer[Collector]
	descriptions []*metrics.Desc
}

// NewPublished returns the metrics of these descriptions, without a state.
func NewPublished(descriptions ...*metrics.Desc) *Published {
	return &Published{descriptions: descriptions}
}

// Publish exports the metrics of a state until ctx ends.
func (p *Published) Publish(ctx context.Context, state Collector) {
	p.register.Do(func() { legacyregistry.CustomMustRegister(p) })
	p.state.Store(&state)
	context.AfterFunc(ctx, func() { p.state.CompareAndSwap(&state, nil) })
}

// DescribeWithStability lists the metrics.
func (p *Published) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range p.descriptions {
		ch <- d
	}
}

// CollectWithStability collects the metrics of the state.
func (p *Published) CollectWithStability(ch chan<- metrics.Metric) {
	if state := p.state.Load(); state != nil {
		(*state).Collect(ch)
	}
}
