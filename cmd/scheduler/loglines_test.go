package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestADecisionIsOneLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		verbosity int
		want      []string
	}{
		{"at 2", 2, []string{`"Unable to schedule pod; no fit; waiting" logger="l" pod="ns/p"`, `"Helped" logger="l" pod="ns/p"`}},
		{"at 4 nothing is left out", 4, []string{
			`"No preemption candidate is found; preemption is not helpful for scheduling" logger="l" pod="ns/p"`,
			`"Unable to schedule pod; no fit; waiting" logger="l" pod="ns/p"`, `"Helped" logger="l" pod="ns/p"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			plain := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(tc.verbosity), textlogger.Output(&out)))
			logger := klog.FromContext(withOneLine(klog.NewContext(t.Context(), plain)))
			logger = klog.LoggerWithValues(klog.LoggerWithName(logger, "l"), "pod", "ns/p")
			logger.V(2).Info("No preemption candidate is found; preemption is not helpful for scheduling")
			logger.V(2).Info("Unable to schedule pod; no fit; waiting")
			func() { logger.WithCallDepth(1).V(2).Info("Helped") }()
			var got []string
			for _, line := range regexp.MustCompile(`(?m)^I.* loglines_test\.go:\d+\] (.*)$`).FindAllStringSubmatch(out.String(), -1) {
				got = append(got, line[1])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines with this file as their place (-want +got):\n%s\n%s", diff, out.String())
			}
		})
	}
}
