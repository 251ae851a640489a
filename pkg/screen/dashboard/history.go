package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"time"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/screen/svg"
)

// sample is a point of the plots.
type sample struct {
	at     time.Time
	totals overview.Totals
}

// sampleUntil keeps the totals of the last hour, until ctx ends.
func (s *Server) sampleUntil(ctx context.Context) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		c := s.cluster()
		s.mu.Lock()
		s.history = append(s.history, sample{c.Taken, c.Totals})
		if len(s.history) > samples {
			s.history = s.history[1:]
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// plot is a plot with its caption.
type plot struct {
	Title string
	// A and B name the lines, A is empty where there is one.
	A, B    string
	Caption string
	SVG     template.HTML
}

func asGPUs(milli int64) float64 { return float64(milli) / gpu.WholeMilli }

// plots draw the last hour.
func (s *Server) plots() []plot {
	s.mu.Lock()
	history := append([]sample(nil), s.history...)
	s.mu.Unlock()
	if len(history) < 2 {
		return nil
	}
	list := []plot{
		draw(history, "gpus", "GPUs", "stranded", "allocated", func(t *overview.Totals) (float64, float64) {
			return asGPUs(t.StrandedMilliGPU), asGPUs(t.AllocatedMilliGPU)
		}),
		draw(history, "pending", "Pending pods", "", "pending",
			func(t *overview.Totals) (float64, float64) { return 0, float64(t.PendingPods) }),
	}
	if last := history[len(history)-1].totals; last.NodesWithoutPrice < last.Nodes {
		list = append(list, draw(history, "dollars", "Dollars an hour", "idle", "all nodes",
			func(t *overview.Totals) (float64, float64) {
				return t.IdleMicroDollarsPerHour.Dollars(), t.MicroDollarsPerHour.Dollars()
			}))
	}
	return list
}

func draw(history []sample, id, title, a, b string, values func(*overview.Totals) (a, b float64)) plot {
	last := history[len(history)-1].at
	lineA, lineB := svg.Series{Class: "a"}, svg.Series{Class: "b"}
	highest := 0.0
	for i := range history {
		x := history[i].at.Sub(last).Minutes()
		va, vb := values(&history[i].totals)
		lineA.X, lineA.Y = append(lineA.X, x), append(lineA.Y, va)
		lineB.X, lineB.Y = append(lineB.X, x), append(lineB.Y, vb)
		highest = max(highest, va, vb)
	}
	number := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	caption := fmt.Sprintf("now %s %s", number(lineB.Y[len(lineB.Y)-1]), b)
	lines := []svg.Series{lineB}
	if a != "" {
		lines = append(lines, lineA)
		caption += fmt.Sprintf(", %s %s", number(lineA.Y[len(lineA.Y)-1]), a)
	}
	p := svg.Plot{ID: "plot-" + id, Title: title + " in the last hour", Description: caption, Lines: lines,
		X: svg.Axis{Label: "minutes", Min: min(-1, lineB.X[0]), Max: 0, Format: number},
		Y: svg.Axis{Max: svg.Above(highest), Format: number}}
	return plot{Title: title, A: a, B: b, Caption: caption,
		SVG: template.HTML(p.SVG())} //nolint:gosec // every text in it is escaped where it is written
}
