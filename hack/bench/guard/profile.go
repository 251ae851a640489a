package guard

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/google/pprof/profile"
)

const (
	// byProfile is the name of the figure that is read from a CPU profile.
	byProfile = "plugins"

	ourPackages = "berth.dev/berth/pkg/"
	// plainPods is how many pods without GPUs are placed to see what plugins cost them.
	plainPods = 20_000
)

// notPlugins are packages of ours that do no work of plugins: the simulation, and the ranking of nodes, which replaces
// filters and scores of kube-scheduler.
var notPlugins = []string{ourPackages + "lab/", ourPackages + "candidates"}

// ofPlugins returns the CPU time for a pod in microseconds, by a CPU profile of this process, of functions of our
// plugins and of the libraries that they call. What they call of the scheduler and of its client is theirs.
func ofPlugins(data []byte) (float64, error) {
	p, err := profile.Parse(bytes.NewReader(data))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU profile: %w", err)
	}
	nanos := int64(0)
	for _, s := range p.Sample {
		if isOfPlugins(s) {
			nanos += s.Value[len(s.Value)-1]
		}
	}
	return float64(nanos) / 1000 / plainPods, nil
}

// isOfPlugins looks for the innermost frame of a sample that is of a plugin or of the scheduler.
func isOfPlugins(s *profile.Sample) bool {
	for _, location := range s.Location {
		for _, line := range location.Line {
			switch name := line.Function.Name; {
			case strings.HasPrefix(name, "k8s.io/kubernetes/pkg/scheduler"), strings.HasPrefix(name, "k8s.io/client-go/rest"):
				return false
			case strings.HasPrefix(name, ourPackages):
				for _, other := range notPlugins {
					if strings.HasPrefix(name, other) {
						return false
					}
				}
				return true
			}
		}
	}
	return false
}
