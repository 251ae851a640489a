package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// Profiles are the names that pods may give in spec.schedulerName to be scheduled here. There are none without the
// scheduler.
func (s *Sandbox) Profiles() ([]string, error) {
	state, err := s.layout.ReadState()
	if err != nil || state.Options.NoScheduler {
		return nil, err
	}
	data, err := os.ReadFile(s.layout.SchedulerConfig())
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	return profilesOf(data)
}

func profilesOf(configuration []byte) ([]string, error) {
	var content struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := sigsyaml.Unmarshal(configuration, &content); err != nil {
		return nil, fmt.Errorf("reading the profiles: %w", err)
	}
	// As the scheduler defaults them: one profile, and the name of one that has none.
	if len(content.Profiles) == 0 {
		return []string{corev1.DefaultSchedulerName}, nil
	}
	var names []string
	for _, p := range content.Profiles {
		if p.SchedulerName == "" {
			p.SchedulerName = corev1.DefaultSchedulerName
		}
		names = append(names, p.SchedulerName)
	}
	return names, nil
}

// WhoSchedules says which pods are scheduled in a sandbox with these profiles, and what to do for the others.
func WhoSchedules(profiles []string) string {
	named := strings.Join(profiles, ", ")
	switch {
	case len(profiles) == 0:
		return "no scheduler runs here: pods stay pending until you start one with this kubeconfig"
	case slices.Contains(profiles, corev1.DefaultSchedulerName):
		return "pods are scheduled if spec.schedulerName is left out or one of " + named
	default:
		return "pods are scheduled if spec.schedulerName is one of " + named +
			"; others stay pending, unless you start with --replace-default"
	}
}
