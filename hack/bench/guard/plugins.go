package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"github.com/google/pprof/profile"
)

const (
	ourPackages = "berth.dev/berth/pkg/"
	// plainPods is how many pods without GPUs are placed to see what plugins cost them.
	plainPods = 20_000
)

// notPlugins are packages of ours that do no work of plugins: the simulation, and the ranking of nodes, which replaces
// filters and scores of kube-scheduler.
var notPlugins = []string{ourPackages + "lab/", ourPackages + "candidates"}

// ofPlugins returns the CPU time in seconds, by a CPU profile of this process, of functions of our plugins and of the
// libraries that they call. What they call of the scheduler and of its client is theirs.
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
	return float64(nanos) / 1e9, nil
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

// profiled measures, and writes the CPU profile of all that this process does to a file if a folder is given.
func profiled[T any](folder, name string, c contender, measure func() (T, error)) (T, error) {
	if folder == "" {
		return measure()
	}
	measured, profile, err := profileOf(measure)
	if err != nil {
		return measured, err
	}
	return measured, write(folder, name, c, profile)
}

// pluginsCost is what our plugins cost, by the CPU profile of all that this process does.
func pluginsCost(folder string, c contender) (sample, error) {
	s, profile, err := profileOf(func() (sample, error) { return take("plugins", c) })
	if err != nil {
		return s, err
	}
	s.Cost, err = ofPlugins(profile)
	s.Cost *= 1e6 / plainPods
	if err != nil || folder == "" {
		return s, err
	}
	return s, write(folder, "plugins", c, profile)
}

func write(folder, name string, c contender, profile []byte) error {
	file := filepath.Join(folder, fmt.Sprintf("%s-%s.pprof", name, c))
	if err := os.WriteFile(file, profile, 0o644); err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	return nil
}

// profileOf measures, and returns the CPU profile of it.
func profileOf[T any](measure func() (T, error)) (measured T, profile []byte, err error) {
	var samples bytes.Buffer
	// It is not started on the virtual clock, on which its own goroutine could not wait.
	if err := pprof.StartCPUProfile(&samples); err != nil {
		return measured, nil, fmt.Errorf("profiling: %w", err)
	}
	measured, err = measure()
	pprof.StopCPUProfile()
	return measured, samples.Bytes(), err
}
