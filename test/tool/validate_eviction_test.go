package tool_test

import (
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
)

// The Job controller counts an evicted pod as a failure, unless podFailurePolicy says otherwise.
func TestAJobThatEndsWhenItsGangIsEvictedIsFound(t *testing.T) {
	t.Parallel()
	const (
		ignore   = "podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}"
		labels   = "labels: {pod-group.scheduling.sigs.k8s.io/name: g, pod-group.scheduling.sigs.k8s.io/min-available: '8'}"
		gang     = `annotations: {berth.dev/gang: "true"}`
		default6 = "when the gang is evicted, each of its pods counts as a failure, and backoffLimit is 6: the Job ends; " +
			"let podFailurePolicy ignore DisruptionTarget (eviction)"
	)
	job := func(member string, spec ...string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  completionMode: Indexed\n  " +
			strings.Join(spec, "\n  ") + "\n  template:\n    metadata: {" + member +
			"}\n    spec: {restartPolicy: Never, containers: [{name: c, image: i}]}\n"
	}
	jobSet := func(member, policy string) string {
		return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\nspec:\n  failurePolicy: " +
			policy + "\n  replicatedJobs:\n  - name: w\n    replicas: 2\n    template:\n      spec:\n        parallelism: 8\n" +
			"        completions: 8\n        template:\n          metadata: {" + member +
			"}\n          spec: {containers: [{name: c, image: i}]}\n"
	}
	ofSet := strings.Replace(default6, "the Job ends; ", "the JobSet fails; let its failurePolicy restart it, or ", 1)
	limit := func(of string) string { return strings.Replace(default6, "backoffLimit is 6", of, 1) }
	const eight, six = "parallelism: 8\n  completions: 8", "parallelism: 6\n  completions: 6"
	for _, tt := range []struct{ name, text, want string }{
		{"eight pods and the default limit", job(gang, eight), default6},
		{"members of a gang by labels", job(labels, eight), default6},
		{"six pods and the default limit", job(gang, six), ""},
		{"pods that are no gang", job("annotations: {}", eight), ""},
		{"a smaller limit", job(gang, six, "backoffLimit: 0"), limit("backoffLimit is 0")},
		{"a limit of as many", job(gang, eight, "backoffLimit: 8"), ""},
		{"fewer completions than parallelism", job(gang, "parallelism: 8", "completions: 4"), ""},
		{"a limit for each index", job(gang, eight, "backoffLimitPerIndex: 1"), ""},
		{"no failure of an index", job(gang, eight, "backoffLimitPerIndex: 0"), limit("backoffLimitPerIndex is 0")},
		{"a limit for each index and one for all", job(gang, eight, "backoffLimitPerIndex: 1", "backoffLimit: 6"), default6},
		{"evictions that are ignored", job(gang, eight, "backoffLimit: 0", ignore), ""},
		{"evictions that are counted", job(gang, eight, strings.Replace(ignore, "Ignore", "Count", 1)), default6},
		{"evictions that are to end the Job", job(gang, six, strings.Replace(ignore, "Ignore", "FailJob", 1)),
			strings.Replace(default6, "each of its pods counts as a failure, and backoffLimit is 6",
				"podFailurePolicy says FailJob for DisruptionTarget", 1)},
		{"evictions that are counted first", job(gang, eight, strings.Replace(ignore, "[{", "[{action: Count, "+
			"onPodConditions: [{type: DisruptionTarget}]}, {", 1)), default6},
		{"a JobSet", jobSet(gang, "{}"), ofSet},
		{"a JobSet that makes its Jobs again", jobSet(gang, "{maxRestarts: 3}"), ""},
		{"a JobSet with rules", jobSet(gang, "{rules: [{action: RestartJobSetAndIgnoreMaxRestarts}]}"), ""},
		{"a JobSet whose pods are no gang", jobSet("labels: {a: b}", "{}"), ""},
		{"a policy for something else", job(gang, eight,
			"podFailurePolicy: {rules: [{action: Ignore, onExitCodes: {operator: In, values: [42]}}]}"), default6},
		{"the Job of a CronJob", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: train}\nspec:\n" +
			"  schedule: '@daily'\n  jobTemplate:\n    spec:\n      parallelism: 8\n      completions: 8\n      template:\n" +
			"        metadata: {" + gang + "}\n        spec: {restartPolicy: Never, containers: [{name: c, image: " +
			"i}]}\n", default6},
		{"a Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: train}\nspec:\n  replicas: 8\n" +
			"  selector: {matchLabels: {a: b}}\n  template:\n    metadata:\n      labels: {a: b}\n      " + gang +
			"\n    spec: {containers: [{name: c, image: i}]}\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got string
			for _, f := range findings(t, tt.text) {
				if _, message, found := strings.Cut(f, "warning: "); found && strings.Contains(f, "(eviction)") {
					_, got, _ = strings.Cut(message, ": ")
				} else if !strings.Contains(f, ": note: ") {
					t.Error(f)
				}
			}
			assert.Equal(t, "", tt.want, got)
		})
	}
}
