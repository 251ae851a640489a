package coscheduling_test

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

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	realbox "berth.dev/berth/test/harness/box"
)

// limitedReservation replaces the one of the scenarios: two nodes of ten for anybody, five for the namespace vip, none for banned,
// and none for gangs of negative priority. What is kept in vain ends after 4 s.
const limitedReservation = `reservation: {maxNodesPercent: 50, afterSeconds: 0, ttlSeconds: 4, minPriority: 0, ` +
	`namespaces: [{name: vip}, {name: banned, maxNodesPercent: 0}, {name: "*", maxNodesPercent: 20}]}`

// cpu asks for so many CPUs in place of the few.
func cpu(amount string, more func(*v1.Pod)) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse(amount)
		if more != nil {
			more(pod)
		}
	}
}

// reserved returns on how many nodes capacity was kept for gangs, by gang, as the log has it.
func (a *attack) reserved() map[string]int {
	a.t.Helper()
	log, err := os.ReadFile(filepath.Join(a.LogDir(), "scheduler.log"))
	if err != nil {
		a.t.Fatal(err)
	}
	nodes := map[string]int{}
	for _, found := range regexp.MustCompile(`"Reserving nodes for a gang" gang="([^"]+)" nodes=(\d+)`).FindAllStringSubmatch(string(log), -1) {
		n, err := strconv.Atoi(found[2])
		if err != nil {
			a.t.Fatal(err)
		}
		nodes[found[1]] = max(nodes[found[1]], n)
	}
	return nodes
}

// awaitReserved waits until something is kept for a gang.
func (a *attack) awaitReserved(gang string) {
	a.t.Helper()
	a.Await(a.t, "a reservation for "+gang, func(context.Context) (bool, error) { return a.reserved()[gang] > 0, nil })
}

// TestReservationsAreLimited has tenants declare gangs that cannot start, to keep nodes from others.
//
//nolint:paralleltest,tparallel // the parts of the story follow each other on one control plane
func TestReservationsAreLimited(t *testing.T) {
	t.Parallel()
	plain, err := os.ReadFile("testdata/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "scheduler-config.yaml")
	limited := strings.ReplaceAll(string(plain), "reservation: {maxNodesPercent: 0}", limitedReservation)
	if err := os.WriteFile(config, []byte(limited), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAttack(t, config)
	for _, name := range []string{"vip", "banned"} {
		a.namespace(name, nil)
	}
	never := v1.PreemptNever
	low := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -1, PreemptionPolicy: &never}
	if err := realbox.CreatePriorityClass(t.Context(), a.Client, low); err != nil {
		t.Fatal(err)
	}
	// A pod of 40 CPUs on each node of 64: no member of 60 fits anywhere until one ends.
	for i := range 10 {
		a.member("alice", fmt.Sprintf("runs-%d", i), "", 0, cpu("40", nil))
	}
	a.awaitBound("alice", 10)
	gang := func(namespace, name string, size int, more func(*v1.Pod)) {
		t.Helper()
		for i := range size {
			a.member(namespace, fmt.Sprintf("%s-%d", name, i), name, size, cpu("60", more))
		}
	}

	names := 0
	t.Run("those who may have none or fewer have none or fewer", func(t *testing.T) {
		gang("banned", "any", 2, nil)
		gang("mallory", "low", 2, func(pod *v1.Pod) { pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = "low", &never })
		gang("mallory", "wide", 3, nil)
		// It comes last, and has its turn.
		gang("vip", "wide", 3, nil)
		a.awaitReserved("vip/wide")
		for name, nodes := range a.reserved() {
			if name != "vip/wide" || nodes > 5 {
				t.Errorf("%d nodes were kept for %s", nodes, name)
			}
		}
		for _, namespace := range []string{"vip", "banned", "mallory"} {
			a.deletePods(namespace, "")
		}
	})
	// wanted has another tenant want a pod of 20 CPUs on each node, and waits until all have one while meanwhile goes on.
	wanted := func(meanwhile func(name string)) {
		t.Helper()
		for i := range 10 {
			a.member("alice", fmt.Sprintf("wants-%d", i), "", 0, cpu("20", nil))
		}
		a.Await(t, "the pods of others", func(ctx context.Context) (bool, error) {
			meanwhile(fmt.Sprintf("name-%d", names))
			pods, err := a.Client.CoreV1().Pods("alice").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
			return err == nil && len(pods.Items) == 20, err
		})
		a.deletePods("alice", "wants-")
		kept := []string{}
		for name, nodes := range a.reserved() {
			if kept = append(kept, name); strings.HasPrefix(name, "mallory/") && nodes > 2 {
				t.Errorf("%d nodes were kept for %s, want no more than 2", nodes, name)
			}
		}
		slices.Sort(kept)
		t.Logf("the attacker's gang has had %d names; reservations: %v", names, kept)
	}
	const waiting = 5 // names at a time, one of which is always ready to have the next turn
	t.Run("gangs that cannot start keep nodes from others for the time of a turn", func(t *testing.T) {
		for ; names < waiting; names++ {
			gang("mallory", fmt.Sprintf("name-%d", names), 2, nil)
		}
		a.awaitReserved("mallory/name-0")
		wanted(func(string) {})
	})
	t.Run("new names gain nothing", func(t *testing.T) {
		wanted(func(name string) {
			gang("mallory", name, 2, nil)
			a.deletePods("mallory", fmt.Sprintf("name-%d-", names-waiting))
			names++
		})
	})
}

// deletePods deletes the pods of a namespace with a prefix at once.
func (a *attack) deletePods(namespace, prefix string) {
	a.t.Helper()
	pods := a.Client.CoreV1().Pods(namespace)
	list, err := pods.List(a.t.Context(), metav1.ListOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, pod := range list.Items {
		if !strings.HasPrefix(pod.Name, prefix) {
			continue
		}
		if err := pods.Delete(a.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			a.t.Fatal(err)
		}
	}
}
