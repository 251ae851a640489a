package plugins_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/test/harness/box"
)

// rackedFleet is four racks of four nodes in two zones. The nodes of the rack with the cache are the dearest, so that
// prices draw away.
const rackedFleet = `shapes:
- {name: cheap, count: 4, labels: {topology.kubernetes.io/zone: z1, topology.kubernetes.io/rack: r1}, annotations: {berth.dev/price-per-hour: "2.00"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
- {name: dear, count: 4, labels: {topology.kubernetes.io/zone: z2, topology.kubernetes.io/rack: r2}, annotations: {berth.dev/price-per-hour: "2.20"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
- {name: mixed, count: 4, labels: {topology.kubernetes.io/zone: z2, topology.kubernetes.io/rack: r3}, annotations: {berth.dev/price-per-hour: "2.00"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
- {name: spare, count: 4, labels: {topology.kubernetes.io/zone: z1, topology.kubernetes.io/rack: r4}, annotations: {berth.dev/price-per-hour: "2.00"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
`

// testPeers has pods follow a cache into its rack, also after a kill of the scheduler, fill the zone when the rack is
// full, start far away when the zone is, and a gang start in one rack.
func testPeers(t *testing.T, b *box.Box) {
	b = b.Part(t, "peers", rackedFleet)
	sized := func(name, cores string, changes ...func(*v1.Pod)) *v1.Pod {
		return pod(name, "berth-scheduler", append(changes, asking(strs{"cpu": cores, "memory": "1Gi"}))...)
	}
	node := func(name string) string {
		t.Helper()
		return b.Bound(t, name, "").Spec.NodeName
	}
	b.Create(t, sized("cache", "1", labeled(strs{"app": "cache"}), selecting(strs{v1.LabelHostname: "dear-0"})))
	b.Bound(t, "cache", "dear-0")
	near := annotated(strs{"berth.dev/near": "app=cache 50GiB/h"})
	for i := range 2 {
		name := fmt.Sprintf("reader-%d", i)
		b.Create(t, sized(name, "8", near))
		if got := node(name); !strings.HasPrefix(got, "dear-") {
			t.Errorf("%s is on %s, its cache on dear-0", name, got)
		}
	}
	b.KillScheduler(t)
	wants := []string{"dear-", "mixed-", "mixed-", "mixed-", "mixed-", ""}
	for i, want := range wants {
		name := fmt.Sprintf("late-reader-%d", i)
		b.Create(t, sized(name, "8", near))
		if got := node(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is on %s, want %s: the nearest that is free", name, got, want)
		}
	}
	for i := range 4 {
		b.Create(t, sized(fmt.Sprintf("worker-%d", i), "7", ganged("train", "4")))
	}
	for i := range 4 {
		name := fmt.Sprintf("worker-%d", i)
		if got, first := node(name), node("worker-0"); got[:3] != first[:3] {
			t.Errorf("%s is on %s, worker-0 on %s", name, got, first)
		}
	}
	b.Create(t, sized("bad", "1", annotated(strs{"berth.dev/near": "app=cache 50GB"})))
	b.Told(t, "bad", `berth.dev/near: "app=cache 50GB" is not a list of label selectors`)
	b.Patch(t, "bad", `{"metadata":{"annotations":{"berth.dev/near":"app=cache 50GiB/h"}}}`)
	// The node of the cache has seven of its eight cores free.
	if got := node("bad"); got != "dear-0" {
		t.Errorf("the pod whose annotation was put right is on %s, its cache on dear-0", got)
	}
}
