package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/require"
)

// judge validates args as they stand in a file. A line has such args, and after => what the error about them begins
// with and, after each …, has besides. Args with nothing after it are valid. An indented line goes on with the one
// before.
func judge(t *testing.T, lines string, args func() Args) {
	t.Helper()
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(lines), "\n   ", ""), "\n") {
		text, want, _ := strings.Cut(line, " =>")
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			args := args()
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), args))
			args.SetDefaults()
			got := ""
			if err := args.Validate(field.NewPath("args")); err != nil {
				got = err.Error()
			}
			begins, rest, _ := strings.Cut(strings.TrimSpace(want), "…")
			ok := strings.HasPrefix(got, begins) && (begins == "") == (got == "") && !strings.Contains(got, "\n")
			for part := range strings.SplitSeq(rest, "…") {
				ok = ok && strings.Contains(got, part)
			}
			if !ok {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestArgsOfCoscheduling(t *testing.T) {
	t.Parallel()
	judge(t, `
{} =>
reservation: {} =>
scheduleTimeoutSeconds: 0 => args.scheduleTimeoutSeconds…0…from 1 to 900
scheduleTimeoutSeconds: 901 => args.scheduleTimeoutSeconds…901…from 1 to 900
retryInitialSeconds: 20 => args.retryMaxSeconds…10…from 20 to 3600
reservation: {maxNodesPercent: 101} => args.reservation.maxNodesPercent…101…from 0 to 100
reservation: {maxNodesPercent: 0} =>
reservation: {ttlSeconds: -1} => args.reservation.ttlSeconds…-1…from 1 to 604800
preemption: {maxUnsavedSeconds: 0} =>
preemption: {maxUnsavedSeconds: 2592001} => args.preemption.maxUnsavedSeconds…2592001…from 0 to 2592000
preemption: {maxRestartSeconds: -1} => args.preemption.maxRestartSeconds…-1…from 0 to 86400
preemption: {maxProtectSeconds: 86401} => args.preemption.maxProtectSeconds…86401…from 0 to 86400
reservation: {namespaces: [{name: team-*}]} => args.reservation.namespaces[0].name…"team-*"…or "*"
reservation: {namespaces: [{}]} => args.reservation.namespaces[0].name…""…or "*"
reservation: {namespaces: [{name: a}, {name: a}]} => args.reservation.namespaces[1].name: Duplicate value: "a"
reservation: {namespaces: [{name: a, maxNodesPercent: 101}]}
    => args.reservation.namespaces[0].maxNodesPercent…101…from 0 to 100
reservation: {minPriority: -5, namespaces: [{name: team-a}, {name: b, maxNodesPercent: 0}, {name: '*'}]} =>
gangOwners: {profiles: [gang-scheduler]} =>
gangOwners: {kinds: [Job, StatefulSet], namespaces: ['*']} =>
gangOwners: {} => args.gangOwners: Required value: want profiles, namespaces or both; "*" stands for all
gangOwners: {kinds: [Job, VolcanoJob], profiles: [a]}
    => args.gangOwners.kinds[1]…"VolcanoJob"…"Job", "JobSet"…"StatefulSet"
gangOwners: {kinds: [Job, Job], profiles: [a]} => args.gangOwners.kinds[1]: Duplicate value: "Job"
gangOwners: {namespaces: [a, '*']} => args.gangOwners.namespaces[1]…"*"…stand alone
gangOwners: {namespaces: [A_b]} => args.gangOwners.namespaces[0]…"A_b"…the name of a namespace
gangOwners: {profiles: ['']} => args.gangOwners.profiles[0]…"": want the schedulerName of a profile
gangOwners: {profiles: [a], jobSetPer: Pod} => args.gangOwners.jobSetPer…"Pod"…"JobSet", "ReplicatedJob", "Replica"
sla: {classes: [{name: a, priorityClasses: [p], deadlineSeconds: 60, timeoutSeconds: 600}]} =>
sla: {ageing: {priorityPerHour: 1000}} =>
sla: {} => args.sla: Required value: want classes, ageing or both
sla: {classes: [{}]} => args.sla.classes[0].name…want a DNS label
sla: {classes: [{name: A b}]} => args.sla.classes[0].name…"A b"…want a DNS label
sla: {classes: [{name: a}, {name: a}]} => args.sla.classes[1].name: Duplicate value: "a"
sla: {classes: [{name: a, priorityClasses: ['']}]}
    => args.sla.classes[0].priorityClasses[0]…""…the name of a PriorityClass
sla: {classes: [{name: a, priorityClasses: [p, p]}]} => args.sla.classes[0].priorityClasses[1]: Duplicate value: "p"
sla: {classes: [{name: a, deadlineSeconds: 0}]} => args.sla.classes[0].deadlineSeconds…0…from 1 to 2592000
sla: {classes: [{name: a, earliestOwnDeadlineSeconds: 0}]}
    => args.sla.classes[0].earliestOwnDeadlineSeconds…0…from 1 to 2592000
sla: {classes: [{name: a, timeoutSeconds: -1}]} => args.sla.classes[0].timeoutSeconds…-1…from 1 to 2592000
sla: {classes: [{name: a, priorityClasses: [p], ageFromPriority: 1}]}
    => args.sla.classes[0].ageFromPriority: Forbidden: has no effect without ageing
sla: {ageing: {priorityPerHour: 1}, classes: [{name: a, ageFromPriority: 1}]}
    => args.sla.classes[0].ageFromPriority…needs priorityClasses
sla: {ageing: {priorityPerHour: 1}, classes: [{name: a, priorityClasses: [p], ageFromPriority: 2000000000}]}
    => args.sla.classes[0].ageFromPriority…2000000000…from -2000000000 to 1000000000
sla: {ageing: {priorityPerHour: 0}} => args.sla.ageing.priorityPerHour…0…from 1 to 2000000000
sla: {ageing: {}} => args.sla.ageing.priorityPerHour: Required value…from 1 to 2000000000
sla: {ageing: {priorityPerHour: 1, upToPriority: 2000000000}}
    => args.sla.ageing.upToPriority…2000000000…from -2000000000 to 1000000000
`, func() Args { return &CoschedulingArgs{} })
}

func TestArgsOfCostOptimized(t *testing.T) {
	t.Parallel()
	// Of prices and windows the second entry is looked at.
	first := strings.NewReplacer("PRICE", `{requirements: [{key: os, operator: Exists}], pricePerHour: "1", weight: -5}`,
		"NIGHT", `{name: night, from: "22:00", to: "06:00"}`)
	judge(t, first.Replace(`
{} =>
interruptions: [] =>
gpuHost: {memoryMiB: 0} =>
defaultRates: {gpuPerHour: free} => args.defaultRates.gpuPerHour…"free"
unknownPrice: neutral => args.unknownPrice…"neutral"…"Neutral"
spot: maybe => args.spot…"maybe"…"tolerate"
fleet: "" => args.fleet…"Static"
thetaPercent: 101 => args.thetaPercent…101…0 to 100
thetaPercent: -1 => args.thetaPercent
growthPercent: 1001 => args.growthPercent…1001
capacityTypes: [{type: spot}] => [args.capacityTypes[0].label
capacityTypes: [{label: a, type: Spot}] => args.capacityTypes[0].type…"Spot"
capacityTypes: [{label: a, contains: [''], type: spot}] => args.capacityTypes[0].contains[0]
resources: [] => args.resources
labels: {product: [a b]} => args.labels.product[0]
interruptions: [{capacityType: spot, perThousandHours: -1}] => args.interruptions[0].perThousandHours
interruptions: [{capacityType: spot, lostMinutes: 525601}] => args.interruptions[0].lostMinutes
interruptions: [{capacityType: flex}] => args.interruptions[0].capacityType
interruptions: [{capacityType: spot}, {capacityType: spot}] => args.interruptions[1].capacityType…Duplicate
gpuHost: {milliCPU: -1} => args.gpuHost.milliCPU
candidates: 100001 => args.candidates…100001
prices: [PRICE, {requirements: [{key: os, operator: Exists}], pricePerHour: '3.06'}] =>
prices: [PRICE, {requirements: [{key: memory, operator: Gt, values: ['40000']}], pricePerHour: '3'}] =>
prices: [PRICE, {requirements: [{key: os, operator: Exists}], pricePerHour: $3}]
    => args.prices[1].pricePerHour…"$3"…decimal
prices: [PRICE, {requirements: [{key: os, operator: Exists}], pricePerHour: '-3'}] => args.prices[1].pricePerHour
prices: [PRICE, {requirements: [{key: os, operator: Exists}], pricePerHour: '1e30'}] => args.prices[1].pricePerHour
prices: [PRICE, {requirements: [{key: os, operator: Exists}]}] => args.prices[1].pricePerHour
prices: [PRICE, {pricePerHour: '3'}] => args.prices[1].requirements…at least one
prices: [PRICE, {requirements: [{key: a, operator: Like}], pricePerHour: '3'}]
    => args.prices[1].requirements[0].operator…Like…NotIn
prices: [PRICE, {requirements: [{key: a b, operator: Exists}], pricePerHour: '3'}] => args.prices[1].requirements[0]…a b
prices: [PRICE, {requirements: [{key: a, operator: In}], pricePerHour: '3'}] => args.prices[1].requirements[0]
prices: [PRICE, {requirements: [{key: a, operator: Gt, values: [x]}], pricePerHour: '3'}]
    => args.prices[1].requirements[0]
windows: [NIGHT, {name: w, days: [Sat, Sun], from: '00:00', to: '24:00', timeZone: Europe/Berlin,
    podSelector: {matchLabels: {a: b}}}] =>
windows: [NIGHT, {from: '00:00', to: '24:00'}] => args.windows[1].name
windows: [NIGHT, {name: night, from: '00:00', to: '24:00'}] => args.windows[1].name…Duplicate
windows: [NIGHT, {name: w, from: '00:00', to: '24:00', timeZone: Mars/Olympus}] => args.windows[1].timeZone…Mars/Olympus
windows: [NIGHT, {name: w, from: '00:00', to: '24:00', timeZone: Local}] => args.windows[1].timeZone
windows: [NIGHT, {name: w, to: '24:00'}] => args.windows[1].from…time of day
windows: [NIGHT, {name: w, from: '00:00', to: '25:00'}] => args.windows[1].to…"25:00"
windows: [NIGHT, {name: w, from: '06:00', to: '06:00'}] => args.windows[1]…never opens
windows: [NIGHT, {name: w, from: '00:00', to: '24:00', days: []}] => args.windows[1]…never opens
windows: [NIGHT, {name: w, from: '00:00', to: '24:00', days: [Mon, Freitag]}] => args.windows[1].days[1]…Freitag…Fri
windows: [NIGHT, {name: w, from: '00:00', to: '24:00', podSelector: {}}] => args.windows[1].podSelector…every pod
windows: [NIGHT, {name: w, from: '00:00', to: '24:00', podSelector: {matchLabels: {a b: ''}}}]
    => args.windows[1].podSelector
`), func() Args { return &CostOptimizedArgs{} })
}

func TestArgsOfGPUAware(t *testing.T) {
	t.Parallel()
	judge(t, `
strategy: Pakc => args.strategy…"Pakc"…"Pack", "Spread"
weights: {scarcity: 100001} => args.weights.scarcity…100001…100000
weights: {opening: -1} => args.weights.opening…-1
candidates: 100001 => args.candidates…100001…100000
minMemoryMiB: -1 => args.minMemoryMiB
cpuIntensiveMinMilliCPU: -1 => args.cpuIntensiveMinMilliCPU
weights: {foreignUse: -1} => args.weights.foreignUse
weights: {framebuffer: -1} => args.weights.framebuffer
resources: [] => args.resources
slicePrefixes: [''] => args.slicePrefixes[0]
labels: {count: [nvidia.com/a, nvidia.com/a]} => args.labels.count[1]
`, func() Args { return &GPUAwareArgs{} })
}

func TestArgsOfIPReservation(t *testing.T) {
	t.Parallel()
	judge(t, `
{} =>
{addressAnnotation: cni.projectcalico.org/ipAddrs, addressFormat: JSONList} =>
addressAnnotation: address =>
addressAnnotation: "" => args.addressAnnotation…name part
addressAnnotation: ip address => args.addressAnnotation…"ip address"
addressAnnotation: a/b/c => args.addressAnnotation
addressAnnotation: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx => args.addressAnnotation…63
addressAnnotation: berth.dev/ip-pool => args.addressAnnotation…names the pool
addressFormat: List => args.addressFormat…List…JSONList…Plain
addressFormat: plain => args.addressFormat
addressFormat: "" => args.addressFormat
{addressAnnotation: "", addressFormat: x} => [args.addressAnnotation…addressFormat
`, func() Args { return &IPReservationArgs{} })
}

func TestArgsOfNetworkTopology(t *testing.T) {
	t.Parallel()
	judge(t, `
{} =>
gangGiBPerHour: 0 =>
levels: [{name: rack, labels: [a], microseconds: 10}, {name: hall, labels: [site/hall], microseconds: 10}] =>
appLabel: app.kubernetes.io/part-of =>
appLabel: a b => args.appLabel…pod label
sameNodeMicroseconds: 6 => args.levels[0].microseconds…at least the 6
levels: [{name: rack, labels: [a], microseconds: 10}, {name: zone, labels: [z], microseconds: 9}]
    => args.levels[1].microseconds
apart: {microseconds: 100} => args.apart.microseconds…2200
sameNodeMicroseconds: -1 => args.sameNodeMicroseconds…from 0
levels: [{name: rack, labels: [a], microseconds: 10}, {name: rack, labels: [b], microseconds: 10}]
    => args.levels[1].name…Duplicate
levels: [{name: rack, labels: [a], microseconds: 10}, {name: zone, labels: [a], microseconds: 10}]
    => args.levels[1].labels[0]
levels: [{labels: [a], microseconds: 10}] => args.levels[0].name
levels: [{name: rack, microseconds: 10}] => args.levels[0].labels…Required
levels: [{name: rack, labels: [a b], microseconds: 10}] => args.levels[0].labels[0]
levels: [{}, {}, {}, {}, {}, {}, {}, {}, {}] => [args.levels…Too many
appGiBPerHour: 1000001 => args.appGiBPerHour
appGiBPerHour: 0 => args.appGiBPerHour…from 1
`, func() Args { return &NetworkTopologyArgs{} })
}
