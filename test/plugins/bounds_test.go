package plugins_test

import (
	"slices"
	"testing"
)

// What bounds a map. TestNothingGrowsWithWhatIsGone holds maps to it: only where a number does, may one grow with what
// is gone.
const (
	// byPod, byGang: an entry goes with the pod, or with the last pod and the PodGroup of the gang.
	byPod, byGang = "the pods that there are", "the gangs that there are"
	// byNode, byAdmin: tenants write no nodes, namespaces, policies, pools, classes and arguments.
	byNode, byAdmin = "the nodes that there are", "what administrators write"
	// oneCycle: the map goes with the cycle, or with the answer that it is made for.
	oneCycle = "one cycle or answer"
	// inSource: the map is a table that nothing is added to.
	inSource = "what the source says"
	// byAnswer: the map is an answer of Prometheus, of bounded size, and is replaced by the next one.
	byAnswer = "the last answer of Prometheus, whose size is bounded"
)

// bounds says of each map of a type in the scheduler what keeps it from growing forever: tenants create and delete as
// many pods as they like, with any text in them. What is bounded by a number has texts of a bounded length as keys,
// too.
var bounds = map[string]map[string]string{
	"pkg/signals": {
		"GPUSnapshot.faults":   byAnswer,
		"GPUSnapshot.use":      byAnswer,
		"PriceSnapshot.quotes": byAnswer,
		"figures.byNode":       byAnswer,
		"largestReading":       inSource,
		"origin.nodes":         byNode,
	},
	"pkg/gpu/gpuview": {
		"domains": inSource,
	},
	"pkg/process/schedulerconfig": {
		"Renamed": inSource,
	},
	"pkg/gang/read": {
		"OwnerPolicy.Kinds":      byAdmin,
		"OwnerPolicy.Namespaces": byAdmin,
		"OwnerPolicy.Profiles":   byAdmin,
		"OwnerState.Says":        byGang,
		"groupsReader.names":     byGang,
	},
	"pkg/gang/read/fields":    {"Reader.fields": oneCycle, "Reader.reads": oneCycle},
	"pkg/gang/read/numbering": {"ordinalKeys": inSource},
	"pkg/gang/read/grouptree": {"Forest.nodes": byGang, "Group.Roles": byGang,
		"declaring.podGroups": oneCycle, "entry.in": byGang},
	"pkg/process/decisions": {"profile.weights": byAdmin},
	"pkg/process/crd": {
		"document.Components":   oneCycle,
		"properties.Properties": oneCycle,
	},
	"pkg/apis/config": {
		"Prometheus.MatchLabels": byAdmin,
		"nodeOperators":          inSource,
	},
	"cmd/scheduler": {
		"demoted": inSource,
	},
	"pkg/address": {
		"Ledger.byPod": byPod, "Ledger.held": byPod, "Ledger.pools": byAdmin, "Ledger.promises": byPod,
		"Plan.planned": oneCycle,
	},
	"pkg/candidates": {
		"cycle.statuses": oneCycle, "images.bySlot": byNode, "images.nodes": byNode, "index.byInfo": byNode,
		"index.byKey": byNode, "plugins.weights": byAdmin, "varieties.byKey": byNode,
	},
	"pkg/gpu/claimview": {
		"Node.byID": byNode, "Slices.byPool": byNode, "Slices.kinds": byNode, "Slices.known": byNode,
		"Slices.nodes": byNode, "State.nodes": byNode,
		"choice.amounts": oneCycle, "choice.kinds": oneCycle, "claimDevice.capacity": byNode,
		"deviceNodeReader.byKey": byNode, "deviceNodeReader.counters": byNode,
	},
	"pkg/capacity": {
		"stockWords":      inSource,
		"boundPods.byUID": byPod, "boundPods.leaving": byPod, "boundPods.priorities": byPod, "memo.domains": byNode,
		"nodes.byName": byPod, "podEntry.others": byPod, "resources.index": byNode,
		"shapes.byKey": byPod, "shapes.rules": byPod, "besides.causes": byPod,
		"besides.nodes": byNode, "besides.taken": byPod,
		"amounts.claimed": oneCycle,
	},
	"pkg/gang/waiting": {
		"Backlog.known": byPod, "Backlog.pods": byPod, "Backlog.preemptors": byPod, "Backlog.roomy": byPod,
		"Backlog.shapes": "16,384 shapes (mostShapes)", "List.ByID": byGang, "List.ByShape": byGang,
		"News.Happenings": byPod, "Pace.namespaces": byAdmin, "Queue.gangs": byGang,
	},
	"pkg/process": {
		"Networks.levels": byAdmin, "Profiles.byName": byAdmin, "Profiles.traits": byAdmin,
	},
	"pkg/gang/members": {"Directory.declared": byGang},
	"pkg/gang/work": {
		"Moment.gangs": oneCycle, "Moment.works": oneCycle,
	},
	"pkg/gang/eviction": {
		"Problem.Groups": oneCycle, "Group.BoundByRole": oneCycle, "Group.SettledByRole": oneCycle,
		"Group.Together": oneCycle, "loss.byRole": oneCycle, "state.byRole": oneCycle,
	},
	"pkg/gang": {
		"stageTable": inSource, "phaseTable": inSource,
		"book.busy": byGang, "book.changed": byGang, "book.groups": byGang, "book.members": byPod,
		"groupEviction.spared": byPod, "block.short": byGang, "Census.Roles": byPod, "Census.labelled": byPod,
		"Census.precedences": byPod, "Census.priorities": byPod, "roster.atRest": byPod, "roster.members": byPod,
		"plan.assignments": byGang, "numbers.roles": byGang, "plan.refused": byGang,
	},
	"pkg/gang/starts": {
		"Turns.rests": byGang, "keeping.counts": oneCycle, "keeping.used": oneCycle,
	},
	"pkg/gpu": {
		"Demand.capacity": byNode, "Demand.pressure": byNode, "Histogram.controllers": byPod,
		"controllerPods.classes": byPod, "Judge.byModel": byNode, "Stranding.models": byNode,
		"strandingShard.values": "65,536 packing values a shard (maxCached)",
	},
	"pkg/gpu/catalog": {
		"aliases": inSource, "generations": inSource, "machines": inSource,
	},
	"pkg/gpu/hamilock": {
		"Locks.lines": byNode,
	},
	"pkg/process/informers": {
		"recent.old": "2048 values (mostRecent)", "recent.young": "2048 values (mostRecent)",
		"sharing.labels": "2048 maps of at most 16 entries (mostRecent, mostEntries)",
		"ByNode.byName":  byNode, "ByNode.byObject": byNode, "badValueReporter.reported": byNode, "carrier.values": byAdmin,
	},
	"pkg/cost/price": {
		"ModelRates.GPU": byAdmin,
	},
	"pkg/gang/plan": {
		"Planner.tables":   "8 choices of levels (maxPathTables)",
		"Class.turnedAway": oneCycle, "search.leftBy": oneCycle,
		"membership.Classes": oneCycle, "membership.Pods": oneCycle,
		"nodeCopies.copies": oneCycle,
		"refusals.nodes":    oneCycle,
		"search.names":      oneCycle, "homes.of": oneCycle, "homes.domains": oneCycle, "Joined.Nodes": oneCycle,
	},
	"pkg/gang/plan/sets": {
		"Division.of": oneCycle, "Problem.classes": oneCycle, "domains.index": oneCycle,
	},
	"pkg/gang/tree": {
		"Group.Roles": "512 groups of 32 roles (maxGroups, maxRoles)", "Minimum.Roles": byPod,
		"Problem.Order": oneCycle,
		"parts.known":   oneCycle, "search.taken": oneCycle,
	},
	"pkg/gang/plan/account": {
		"Spread.counts": oneCycle, "Storage.taken": oneCycle,
	},
	"pkg/gang/hold": {
		"Holders.namespaces": byAdmin, "Holds.kept": byGang, "TurnedAway.gangs": byGang, "TurnedAway.pods": byPod,
		"heldNodes.byGang": byGang, "heldNodes.byNode": byNode, "Search.backfills": byPod,
	},
	"pkg/gang/status": {
		"Owners.gangs": byGang, "record.foreign": byGang,
		"progress.settled": oneCycle, "Owners.kinds": byAdmin, "State.Held": oneCycle,
		"namespaces.lines": byGang, "ownerKind.gangs": byGang,
		"ownerObject.states": byGang, "PodEvents.told": byPod,
		"record.anomalies": byGang, "record.waits": byGang, "Controller.records": byGang,
	},
	"pkg/gang/preempt": {
		"Evictor.work": byPod, "attempt.said": byPod,
		"checking.said": oneCycle, "request.held": oneCycle,
		"problemBuilder.covers": oneCycle, "problemBuilder.leaving": oneCycle, "proposal.pods": byNode,
		"division.nodes": byNode,
	},
	"pkg/gang/loop": {
		"HeldPods.pods": byPod, "Loop.resting": byGang, "gates.gate": byPod,
	},
	"pkg/plugins/coscheduling": {
		"feed.ends": byAdmin, "hardware.failing": byNode,
	},
	"pkg/plugins/costoptimized": {
		"Plugin.offers": "1024 kinds of nodes (maxOffers)", "runningPods.gangs": byGang,
		"waiting.pods": byPod,
	},
	"pkg/plugins/gpuaware": {
		"fleet.dirty": byNode, "fleet.parts": byNode, "ledger.byNode": byNode,
		"ledger.byPod": byPod, "simulations.byNode": oneCycle, "simulations.byPod": oneCycle,
		"totals.nodes": byNode,
	},
	"pkg/plugins/networktopology": {
		"link.moved": oneCycle, "peers.assumed": byPod,
	},
	"pkg/plugins/placementpolicy": {
		"view.demands": "4096 pods (maxDemands)", "view.problems": byAdmin,
	},
	"pkg/policy": {
		"Free.changed": byPod, "Ledger.holders": byAdmin, "subject.labels": oneCycle,
		"subject.ofNamespace": oneCycle,
	},
	"pkg/topology": {
		"Tally.domains": oneCycle, "Tally.nodes": oneCycle,
	},
}

// TestEveryMapIsBounded fails for a map, or a cache, of a package in the scheduler if the list above does not say what
// bounds it: fields of types, also by the name of a type that is a map, and variables of packages.
func TestEveryMapIsBounded(t *testing.T) {
	t.Parallel()
	found := map[string][]string{}
	for _, dir := range linked(t) {
		found[dir] = mapsOf(t, dir)
	}
	for dir, fields := range found {
		for _, field := range fields {
			if bounds[dir][field] == "" {
				t.Errorf("package %s: nothing says what bounds %s", dir, field)
			}
		}
	}
	for dir, fields := range bounds {
		for field := range fields {
			if !slices.Contains(found[dir], field) {
				t.Errorf("package %s: %s is listed and does not exist", dir, field)
			}
		}
	}
}
