package informers

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Published offers what the profiles of a scheduler share as metrics, while that scheduler runs. Metrics that are not
// read cost nothing.
type Published[S any] struct {
	metrics.BaseStableCollector

	register     sync.Once
	state        atomic.Pointer[S]
	collect      func(state *S, ch chan<- metrics.Metric)
	descriptions []*metrics.Desc
}

// NewPublished offers these metrics, which collect reads off the state.
func NewPublished[S any](collect func(*S, chan<- metrics.Metric), descriptions ...*metrics.Desc) *Published[S] {
	return &Published[S]{collect: collect, descriptions: descriptions}
}

// Publish offers the metrics of a state until ctx ends.
func (p *Published[S]) Publish(ctx context.Context, state *S) {
	p.register.Do(func() { legacyregistry.CustomMustRegister(p) })
	p.state.Store(state)
	context.AfterFunc(ctx, func() { p.state.CompareAndSwap(state, nil) })
}

// DescribeWithStability lists the metrics.
func (p *Published[S]) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range p.descriptions {
		ch <- d
	}
}

// CollectWithStability tells what holds now.
func (p *Published[S]) CollectWithStability(ch chan<- metrics.Metric) {
	if state := p.state.Load(); state != nil {
		p.collect(state, ch)
	}
}
