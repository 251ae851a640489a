package plugins_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

// limitedReservation is args of Coscheduling: two nodes of ten for anybody, five for the namespace vip, none for
// banned, and none for gangs of negative priority. What is kept without a start ends after 4 s.
const limitedReservation = `reservation: {maxNodesPercent: 50, afterSeconds: 0, ttlSeconds: 4, minPriority: 0, ` +
	`namespaces: [{name: vip}, {name: banned, maxNodesPercent: 0}, {name: "*", maxNodesPercent: 20}]}`

// reserved returns on how many nodes capacity was kept for gangs, by gang, as the log has it.
func reserved(t *testing.T, b *box.Box) map[string]int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(b.LogDir(), "scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := map[string]int{}
	for _, found := range regexp.MustCompile(`"Reserving nodes for a gang" gang="([^"]+)" nodes=(\d+)`).FindAllStringSubmatch(string(log), -1) {
		n, err := strconv.Atoi(found[2])
		if err != nil {
			t.Fatal(err)
		}
		nodes[found[1]] = max(nodes[found[1]], n)
	}
	return nodes
}

// awaitReserved waits until something is kept for a gang.
func awaitReserved(t *testing.T, b *box.Box, gang string) {
	t.Helper()
	b.Await(t, "a reservation for "+gang, func(context.Context) (bool, error) { return reserved(t, b)[gang] > 0, nil })
}

// testReservations has tenants declare gangs that cannot start, to keep nodes from others.
func testReservations(t *testing.T, b *box.Box) {
	b = b.Part(t, "reservations", fmt.Sprintf(tenFleet, "reservations"))
	alice, mallory := b.Tenant(t, "alice", nil), b.Tenant(t, "mallory", nil)
	vip, banned := b.Tenant(t, "vip", nil), b.Tenant(t, "banned", nil)
	never := v1.PreemptNever
	low := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -1, PreemptionPolicy: &never}
	if err := box.CreatePriorityClass(t.Context(), b.Client, low); err != nil {
		t.Fatal(err)
	}
	// A pod of 40 CPUs on each node of 64: no member of 60 fits anywhere until one ends.
	for _, name := range numbered("runs", 10) {
		member(t, alice, name, "", 0, asking(strs{"cpu": "40"}))
	}
	alice.BoundPods(t, "", 10)
	gang := func(t *testing.T, tenant *box.Box, name string, size int, changes ...func(*v1.Pod)) {
		t.Helper()
		for _, pod := range numbered(name, size) {
			member(t, tenant, pod, name, size, append(changes, asking(strs{"cpu": "60"}))...)
		}
	}

	names := 0
	t.Run("those who may have none or fewer have none or fewer", func(t *testing.T) {
		gang(t, banned, "any", 2)
		gang(t, mallory, "low", 2,
			func(pod *v1.Pod) { pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = "low", &never })
		gang(t, mallory, "wide", 3)
		// It comes last, and has its turn.
		gang(t, vip, "wide", 3)
		awaitReserved(t, b, "vip/wide")
		for name, nodes := range reserved(t, b) {
			if name != "vip/wide" || nodes > 5 {
				t.Errorf("%d nodes were kept for %s", nodes, name)
			}
		}
		for _, tenant := range []*box.Box{vip, banned, mallory} {
			deletePods(t, tenant, "")
		}
	})
	// wanted has another tenant want a pod of 20 CPUs on each node, and waits until all have one.
	wanted := func(t *testing.T, start func()) {
		t.Helper()
		for _, name := range numbered("wants", 10) {
			member(t, alice, name, "", 0, asking(strs{"cpu": "20"}))
		}
		start()
		deletePods(t, alice, "wants-")
		kept := []string{}
		for name, nodes := range reserved(t, b) {
			if kept = append(kept, name); strings.HasPrefix(name, "mallory/") && nodes > 2 {
				t.Errorf("%d nodes were kept for %s, want no more than 2", nodes, name)
			}
		}
		slices.Sort(kept)
		t.Logf("the attacker's gang has had %d names; reservations: %v", names, kept)
	}
	const waiting = 5 // names at a time; one is always ready to have the next turn
	t.Run("gangs that cannot start keep nodes from others for the time of a turn", func(t *testing.T) {
		for ; names < waiting; names++ {
			gang(t, mallory, fmt.Sprintf("name-%d", names), 2)
		}
		awaitReserved(t, b, "mallory/name-0")
		wanted(t, func() { alice.BoundPods(t, "", 20) })
	})
	t.Run("new names gain nothing", func(t *testing.T) {
		wanted(t, func() {
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 4*time.Minute, true,
				func(ctx context.Context) (bool, error) {
					gang(t, mallory, fmt.Sprintf("name-%d", names), 2)
					deletePods(t, mallory, fmt.Sprintf("name-%d-", names-waiting))
					names++
					pods, err := b.Client.CoreV1().Pods(alice.Namespace).List(ctx,
						metav1.ListOptions{FieldSelector: "spec.nodeName!="})
					return err == nil && len(pods.Items) == 20, err
				})
			if err != nil {
				t.Fatalf("waiting for the pods of others: %v", err)
			}
		})
	})
}

// deletePods deletes the pods of a namespace with a prefix at once.
func deletePods(t *testing.T, b *box.Box, prefix string) {
	t.Helper()
	pods := b.Client.CoreV1().Pods(b.Namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if !strings.HasPrefix(pod.Name, prefix) {
			continue
		}
		if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
	}
}
