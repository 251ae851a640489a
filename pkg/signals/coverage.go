package signals

import "time"

// coverage is how many of the GPU nodes have a sample of a signal that counts.
type coverage struct {
	signal         string
	covered, nodes int
	// newest is the age of the newest sample, ok false if there is none.
	newest time.Duration
	ok     bool
	// entries is the number of nodes with a sample of any age.
	entries int
}

func coverageOf[S any](signal string, nodes []Node, now time.Time, ages sampleAges, samples map[string]S,
	timeOf func(S) time.Time) coverage {
	c := coverage{signal: signal, nodes: len(nodes), entries: len(samples)}
	for _, node := range nodes {
		sample, ok := samples[node.Name]
		if !ok {
			continue
		}
		age := now.Sub(timeOf(sample))
		if ages.weight(age) > 0 {
			c.covered++
		}
		if !c.ok || age < c.newest {
			c.newest, c.ok = age, true
		}
	}
	return c
}

// enough says whether the signal may count: a cluster without GPU nodes has nothing to weigh.
func (c coverage) enough(minPercent int) bool {
	return c.nodes > 0 && c.covered*100 >= minPercent*c.nodes
}

func (c coverage) state(minPercent int, err error) state {
	s := stateOf(c.signal, err)
	s.covered, s.nodes = c.covered, c.nodes
	if err == nil && c.nodes > 0 && !c.enough(minPercent) {
		s.trouble = troubleUncovered
	}
	return s
}

func stateOf(signal string, err error) state {
	if err != nil {
		return state{signal: signal, trouble: troubleFailing, err: err}
	}
	return state{signal: signal}
}

func (c coverage) export(server string) {
	ratio := 0.0
	if c.nodes > 0 {
		ratio = float64(c.covered) / float64(c.nodes)
	}
	metricCoverage.WithLabelValues(server, c.signal).Set(ratio)
	metricEntries.WithLabelValues(server, c.signal).Set(float64(c.entries))
	if c.ok {
		metricAge.WithLabelValues(server, c.signal).Set(c.newest.Seconds())
	}
}
