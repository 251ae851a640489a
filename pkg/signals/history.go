package signals

import (
	"context"
	"fmt"
	"slices"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/apis/config"
)

// History asks one Prometheus server for ranges of time, within the same bounds as the readers.
type History struct {
	*client
	queries queries
}

// NewHistory reads the TLS files and makes no connection.
func NewHistory(args *config.Prometheus) (*History, error) {
	c, err := newClient(args)
	if err != nil {
		return nil, err
	}
	return &History{c, newQueries(nil, args.MatchLabels)}, nil
}

// Close lets go of the connections that are kept open between queries.
func (h *History) Close() { h.close() }

// Server is the host of the server, for messages.
func (h *History) Server() string { return h.server }

// Selector selects the series of a metric that are of the cluster and match.
func (h *History) Selector(metric string, matchers ...string) string {
	return h.queries.selector(metric, matchers...)
}

// Range asks for a range of time.
func (h *History) Range(ctx context.Context, query string, r prometheusv1.Range) (model.Matrix, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("no answer within %s", h.timeout))
	defer cancel()
	value, _, err := h.api.QueryRange(ctx, query, r, prometheusv1.WithTimeout(h.timeout))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("querying %s: %w", h.server, shortened(err))
	}
	return matrixOf(value)
}

// matrixOf is the answer to a question about a range.
func matrixOf(value model.Value) (model.Matrix, error) {
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("reading the answer: a %s came instead of a matrix", typeOf(value))
	}
	if slices.Contains(matrix, nil) {
		return nil, errNullSample
	}
	return matrix, nil
}
