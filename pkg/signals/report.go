package signals

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// reporter tells in the log when signals fail, are off or come back: one line a change, not one a round.
type reporter struct {
	logger klog.Logger
	server string
	told   map[string]trouble
}

// trouble is what is wrong with a signal, empty for nothing.
type trouble string

const (
	// troubleFailing: the query brings no usable answer.
	troubleFailing trouble = "failing"
	// troubleUncovered: too few nodes have a sample that counts.
	troubleUncovered trouble = "uncovered"
)

// state is how a signal stands after a round.
type state struct {
	signal  string
	trouble trouble
	// err explains a failure.
	err error
	// covered of nodes have a sample that counts.
	covered, nodes int
}

func newReporter(logger klog.Logger, server string) *reporter {
	return &reporter{logger: logger, server: server, told: map[string]trouble{}}
}

// report logs one line if any signal is in another state than at the last call.
func (r *reporter) report(states []state) {
	changed := false
	var failing, uncovered []string
	var firstErr error
	covered, nodes := 0, 0
	for _, s := range states {
		changed = changed || r.told[s.signal] != s.trouble
		r.told[s.signal] = s.trouble
		switch s.trouble {
		case troubleFailing:
			failing = append(failing, s.signal)
			firstErr = cmp.Or(firstErr, s.err)
		case troubleUncovered:
			uncovered = append(uncovered, s.signal)
			covered, nodes = s.covered, s.nodes
		}
	}
	if !changed {
		return
	}
	slices.Sort(failing)
	slices.Sort(uncovered)
	switch {
	case len(failing) > 0:
		r.logger.Error(firstErr,
			"Reading live signals fails; what was read before counts until it is too old, then scheduling goes on without",
			"server", r.server, "failing", strings.Join(failing, ","), "uncovered", strings.Join(uncovered, ","))
	case len(uncovered) > 0:
		r.logger.Info("Live signals are off for all nodes because too few GPU nodes have a fresh sample",
			"server", r.server, "uncovered", strings.Join(uncovered, ","), "nodesWithSample", covered, "gpuNodes", nodes)
	default:
		r.logger.Info("All live signals are read again", "server", r.server)
	}
}
