package sandbox

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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
