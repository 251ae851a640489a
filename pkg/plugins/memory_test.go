package plugins

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What bounds a map.
const (
	// byPod, byGang: an entry goes with the pod, or with the last pod and the PodGroup of the gang.
	byPod, byGang = "the pods that there are", "the gangs that there are"
	// byNode, byAdmin: tenants write no nodes, namespaces, policies, pools, classes and arguments.
	byNode, byAdmin = "the nodes that there are", "what administrators write"
	// oneCycle: the map goes with the cycle, or with the answer that it is made for.
	oneCycle = "one cycle or answer"
)

// bounds says of each map of a type in the scheduler what keeps it from growing for ever: tenants create and delete as many pods
// as they like, with any text in them. What is bounded by a number has texts of a bounded length as keys, too.
var bounds = map[string]map[string]string{
	"address": {
		"Ledger.byIdentity": byPod, "Ledger.held": byPod, "Ledger.leaving": byPod, "Ledger.pools": byAdmin,
		"Ledger.promised": byPod, "Ledger.promises": byPod, "Plan.planned": oneCycle, "Plan.promised": oneCycle,
		"places.subnets": byAdmin,
	},
	"candidates": {
		"cycle.statuses": oneCycle, "images.bySlot": byNode, "images.nodes": byNode, "index.byInfo": byNode,
		"index.byKey": byNode, "plugins.weights": byAdmin, "varieties.byKey": byNode,
	},
	"clusterstate": {
		"ByNode.byName": byNode, "ByNode.byObject": byNode, "ClaimState.stamps": byNode,
		"GPUClaims.demands": "256 shapes of at most 16 KiB", "GPUClaims.late": "256 shapes of at most 4 KiB",
		"GPUClaims.outcomes": "256 shapes of at most 16 KiB", "GPUClaims.untold": byNode,
		"badValueReporter.reported": byNode, "remembered.byNode": byNode,
	},
	"gang": {
		"Ledger.binding": byGang, "Pace.lanes": byAdmin, "lane.queued": byGang, "lane.begun": byGang, "group.atRest": byPod, "planTally.roles": byGang, "planTally.readyRoles": byGang, "ReserveTurns.namespaces": byAdmin,
		"EvictProblem.Groups": oneCycle, "Ledger.degraded": byGang, "Ledger.groups": byGang,
		"Ledger.invited": byGang, "Ledger.member": byPod, "Ledger.planned": byGang, "Minimum.Roles": byPod,
		"ReserveTurns.rests": byGang, "Rounds.groups": byGang, "VictimGroup.SettledByRole": oneCycle,
		"View.Roles": oneCycle, "block.short": byGang, "census.labelled": byPod, "census.precedences": byPod,
		"census.priorities": byPod, "census.roles": byPod, "evictSearch.byRole": oneCycle, "orders.byClass": oneCycle, "orders.seen": oneCycle, "group.members": byPod,
		"plan.assignments": byGang, "plan.refused": byGang, "reserver.counts": oneCycle,
		"reserver.nodes": oneCycle,
	},
	"gpu": {
		"Demand.pressure": byNode, "Judge.byModel": byNode, "Mix.weights": "2048 classes (mostClasses)",
		"Stranding.models": byNode, "Supply.byModel": byNode, "lifetimes.byClass": "2048 classes (mostClasses)",
		"owners.lives": "1024 owners (mostOwners)", "shares.arrived": "1024 owners (mostOwners)",
		"Workload.kinds": "a replay or an overview of a cluster; no scheduler has one", "strandingShard.values": "the cache of packing values (maxCached)",
	},
	"informers": {
		"carrier.values": byAdmin,
	},
	"price": {
		"ModelRates.GPU": byAdmin,
	},
	"plugins/coscheduling": {
		"statusWriter.mixed": byGang, "statusWriter.waits": byGang, "statusWriter.writing": byGang, "statusWriter.busy": byAdmin, "namespaceTroubles.by": byAdmin, "namespaceTroubles.well": byAdmin,
		"plans.parked": byGang, "reservationHolders.namespaces": byAdmin, "standInRefusals.never": byGang, "standInRefusals.by": byAdmin, "standInPause.skipped": byGang,
		"modelChoice.node": oneCycle, "modelChoice.classes": oneCycle, "modelChoice.count": oneCycle,
		"dryRun.classNames": oneCycle, "dryRun.generations": oneCycle, "dryRun.gone": oneCycle, "dryRun.displaced": oneCycle, "meanNode.scalar": oneCycle, "modelLimits.byClass": oneCycle,
		"afterStart.pods": "1,000 pods (mostAfterStart)", "gpuModels.known": "100,000 nodes (mostKnown)",
		"classRun.causes": oneCycle, "classRun.lasting": oneCycle, "coverage.byNamespace": oneCycle,
		"dryRun.classes": oneCycle, "dryRun.copies": oneCycle, "dryRun.index": oneCycle, "dryRun.pods": oneCycle,
		"dryRun.refused": oneCycle, "echoes.pending": byGang, "eviction.said": byPod, "evictor.work": byPod,
		"feed.ends": byAdmin, "gates.gate": byPod, "headPod.others": byPod, "headroom.byName": byPod,
		"headroom.domains": byNode, "headroom.index": byNode, "headroom.pods": byPod, "headroom.rules": byPod,
		"headroom.shapes": byPod, "overdue.waits": byPod, "ownerFollower.dirty": byGang,
		"ownerFollower.gangs": byGang, "ownerFollower.sources": byAdmin, "ownerSource.gangs": byGang,
		"ownerSource.states": byGang, "pluginWords.said": byGang, "profiles.byName": byAdmin,
		"promises.kept": byGang, "promises.turnedAway": byPod, "promises.view": byGang, "request.held": oneCycle, "proposal.pods": byNode,
		"request.own": oneCycle, "request.wanted": oneCycle, "spread.counts": oneCycle,
		"statusWriter.dirty": byGang, "statusWriter.odd": byGang, "statusWriter.owed": byGang, "statusWriter.reworded": byGang,
		"statusWriter.wrote": byGang, "storageAccount.taken": oneCycle, "told.pods": byPod,
		"waker.byShape": byGang, "waker.dirty": byGang, "waker.touches": byPod, "waker.waiting": byGang,
	},
	"plugins/costoptimized": {
		"Plugin.offers": "1024 kinds of nodes (maxOffers)", "bill.byCapacity": byNode,
		"billCollector.byProfile": byAdmin, "runningPods.gangs": byGang, "settings.interruptions": byAdmin,
		"waiting.pods": byPod,
	},
	"plugins/gpuaware": {
		"changes.numbers": "16,384 changes (changeChunk, maxChunks)", "faulted.byUID": byPod,
		"fleet.dirty": byNode, "fleet.parts": byNode, "kin.byGroup": byPod, "kin.groups": byPod,
		"learner.capacity": byNode, "learner.doors": byNode,
		"learner.groups": "16 groups: dropped once the mix is known", "learner.memories": byNode,
		"learner.nodes": byNode, "learner.sizes": byNode, "ledger.byNode": byNode, "ledger.byPod": byPod,
		"memos.byKey": "256 kinds of pods (maxMemos)", "nodeLocks.lines": byNode,
		"refusals.numbers": "4096 reasons (maxRefusals)", "roll.pods": byPod, "roll.waiting": byPod,
		"siblings.byClique": byNode, "totals.nodes": byNode,
	},
	"plugins/ipreservation": {
		"book.nominated": byPod, "book.profiles": byAdmin, "book.unseen": byPod, "calls.of": byPod,
	},
	"plugins/networktopology": {
		"group.byNode": byPod, "link.moved": oneCycle, "peers.groups": byPod, "peers.pods": byPod,
		"peers.spaces": byPod, "space.pods": byPod, "space.terms": byPod,
	},
	"plugins/placementpolicy": {
		"book.nominated": byPod, "book.told": "4096 pods (maxDemands)", "book.wake": byPod,
		"view.demands": "4096 pods (maxDemands)", "view.marks": byNode, "view.problems": byAdmin,
	},
	"policy": {
		"Free.freed": byPod, "Free.taken": byPod, "Free.why": byPod, "Ledger.holders": byAdmin,
		"marksTable.known": byNode, "subject.input": oneCycle, "subject.labels": oneCycle,
		"subject.ofNamespace": oneCycle,
	},
	"reload": {
		"Config.counts": byAdmin, "handedOver.Counts": byAdmin,
	},
	"rights": {
		"StandIn.away": byAdmin, "StandIn.listed": byAdmin, "StandIn.lost": byAdmin, "StandIn.vital": byAdmin,
	},
	"topology": {
		"Tally.domains": oneCycle, "Tally.nodes": oneCycle,
	},
}

// TestEveryMapIsBounded fails for a map, or a cache, of which the list above does not say what bounds it.
func TestEveryMapIsBounded(t *testing.T) {
	t.Parallel()
	for _, root := range []string{
		".", "../address", "../candidates", "../clusterstate", "../gang", "../gpu", "../informers", "../policy", "../price", "../reasons",
		"../reload", "../rights", "../sla", "../topology",
	} {
		found := map[string][]string{}
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			dir := filepath.ToSlash(filepath.Join("plugins", filepath.Dir(path)))
			found[dir] = append(found[dir], mapsOf(t, path)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for dir, fields := range found {
			for _, field := range fields {
				if bounds[dir][field] == "" {
					t.Errorf("package %s: nothing says what bounds %s", dir, field)
				}
			}
			for field := range bounds[dir] {
				if !slices.Contains(fields, field) {
					t.Errorf("package %s: %s is listed and does not exist", dir, field)
				}
			}
		}
	}
}

// mapsOf are the fields of a file that hold maps or caches.
func mapsOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					if grows(field.Type) {
						fields = append(fields, spec.Name.Name+"."+name.Name)
					}
				}
			}
		}
		return true
	})
	return fields
}

// grows reports whether the type holds a map or a cache.
func grows(of ast.Expr) bool {
	found := false
	ast.Inspect(of, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.MapType:
			found = true
		case *ast.FuncType:
			return false
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			found = found || ok && (pkg.Name == "sync" && n.Sel.Name == "Map" || pkg.Name == "lru" && n.Sel.Name == "Cache")
		}
		return true
	})
	return found
}
