package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// FuzzArgs reads args of every plugin as they stand in a file, fills in the defaults and validates them.
func FuzzArgs(f *testing.F) {
	for _, seed := range []string{
		"strategy: Pack\nweights: {scarcity: 800}\n" +
			"signals: {prometheus: {url: 'http://p:9090', bearerTokenFile: /t}, fatalXIDs: [79], faultWindow: 1h}",
		"spot: tolerate\nprices: [{requirements: [{key: a, operator: In, values: [b]}], pricePerHour: '27.45'}, " +
			"{requirements: [{key: a, operator: Exists}], pricePerHour: '3', weight: 3}]",
		"windows: [{name: night, days: [Mon, Tue], from: '22:00', to: '06:00', timeZone: Europe/Berlin, podSelector: " +
			"{matchLabels: {a: b}}}]\ndefaultRates: {gpuPerHour: '1'}",
		"priceSource: {prometheus: {url: 'http://p'}, maxAge: 2h}\n" +
			"interruptions: [{capacityType: spot, perThousandHours: 3, lostMinutes: 20}]\nthetaPercent: 50\ngrowthPercent: 3\n" +
			"fleet: Static",
		"scheduleTimeoutSeconds: 60\nretryInitialSeconds: 1\nretryMaxSeconds: 10\n" +
			"reservation: {maxNodesPercent: 20, ttlSeconds: 600}",
		"sla: {classes: [{name: a, priorityClasses: [p], deadlineSeconds: 60, earliestOwnDeadlineSeconds: 30, " +
			"timeoutSeconds: 9, ageFromPriority: 5}], ageing: {priorityPerHour: 10, upToPriority: 100}}",
		"gangOwners: {kinds: [Job, JobSet], profiles: [gang-scheduler], namespaces: ['*'], jobSetPer: Replica}",
		"sameNodeMicroseconds: 1\nlevels: [{name: rack, labels: [a/b], microseconds: 9}]\n" +
			"apart: {microseconds: 10}\nappLabel: app",
		"headroomPercent: 20\nsignals: {prometheus: {url: 'http://p'}, latencyMsQuery: 'x', throughputQuery: 'y', " +
			"hostLabels: [node], maxAge: 2m}",
	} {
		f.Add(seed)
	}
	path := field.NewPath("args")
	f.Fuzz(func(t *testing.T, text string) {
		for _, args := range argsTypes() {
			if yaml.Unmarshal([]byte(text), args) == nil {
				args.SetDefaults()
				if err := args.Validate(path); err != nil &&
					(!strings.Contains(err.Error(), "args") || strings.ContainsAny(err.Error(), "\n\r")) {
					t.Errorf("the error is not a line that names the field: %q", err)
				}
			}
		}
	})
}
