package main

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// demotedFrom is the level of lines that are written at demotedTo only.
const demotedFrom, demotedTo = 2, 4

// demoted are lines that repeat what another line of the same level says: an attempt that fails says why in
// "Unable to schedule pod", what preemption found included.
var demoted = map[string]bool{
	"No preemption candidate is found; preemption is not helpful for scheduling": true,
}

// withOneLine returns a context whose logger writes one line at v=2 for each decision.
func withOneLine(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	return klog.NewContext(ctx, logr.New(oneLine{logger.WithCallDepth(1).GetSink()}))
}

// oneLine leaves demoted lines out.
type oneLine struct{ logr.LogSink }

// Init does nothing: the sink within has been set up.
func (oneLine) Init(logr.RuntimeInfo) {}

func (s oneLine) Info(level int, message string, keysAndValues ...any) {
	if level == demotedFrom && demoted[message] && !s.Enabled(demotedTo) {
		return
	}
	s.LogSink.Info(level, message, keysAndValues...)
}

func (s oneLine) WithValues(keysAndValues ...any) logr.LogSink {
	return oneLine{s.LogSink.WithValues(keysAndValues...)}
}

func (s oneLine) WithName(name string) logr.LogSink { return oneLine{s.LogSink.WithName(name)} }

// WithCallDepth keeps the place in the code right where helpers log.
func (s oneLine) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return oneLine{deep.WithCallDepth(depth)}
	}
	return s
}
