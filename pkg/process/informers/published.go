package informers

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Collector is state that can be told in metrics.
type Collector interface {
	Collect(ch chan<- metrics.Metric)
}

// Published offers what the profiles of a scheduler share as metrics, while that scheduler runs. Metrics that are not
// read cost nothing.
type Published struct {
	metrics.BaseStableCollector

	register     sync.Once
	state        atomic.Pointer[Collector]
	descriptions []*metrics.Desc
}

// NewPublished offers these metrics, which the state tells.
func NewPublished(descriptions ...*metrics.Desc) *Published {
	return &Published{descriptions: descriptions}
}

// Publish offers the metrics of a state until ctx ends.
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

// CollectWithStability tells what holds now.
func (p *Published) CollectWithStability(ch chan<- metrics.Metric) {
	if state := p.state.Load(); state != nil {
		(*state).Collect(ch)
	}
}
