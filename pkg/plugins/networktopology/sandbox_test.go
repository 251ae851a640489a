package networktopology_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// racks are four racks of four nodes in two zones. The nodes of the rack with the cache are the dearest, so that prices draw away.
const racks = `shapes:
- {name: cheap, count: 4, labels: {topology.kubernetes.io/zone: z1, topology.kubernetes.io/rack: r1}, annotations: {berth.dev/price-per-hour: "2.00"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
- {name: dear, count: 4, labels: {topology.kubernetes.io/zone: z2, topology.kubernetes.io/rack: r2}, annotations: {berth.dev/price-per-hour: "2.20"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
- {name: mixed, count: 4, labels: {topology.kubernetes.io/zone: z2, topology.kubernetes.io/rack: r3}, annotations: {berth.dev/price-per-hour: "2.00"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
- {name: spare, count: 4, labels: {topology.kubernetes.io/zone: z1, topology.kubernetes.io/rack: r4}, annotations: {berth.dev/price-per-hour: "2.00"}, allocatable: {cpu: "8", memory: 64Gi, pods: "110"}}
`

// TestPodsGoNearTheirPeersOnARealControlPlane has pods follow a cache into its rack, also after a kill of the scheduler, fill the
// zone when the rack is full, start far away when the zone is, and a gang start in one rack.
//
//nolint:paralleltest // the parts of the story follow each other on one control plane
func TestPodsGoNearTheirPeersOnARealControlPlane(t *testing.T) {
	t.Parallel()
	box := box.Start(t, racks, sandbox.Options{NoKubelet: true})
	node := func(name string) string {
		t.Helper()
		return box.Bound(t, name, "").Spec.NodeName
	}
	cache := pod("cache", "").Label("app", "cache").NodeSelector(map[string]string{v1.LabelHostname: "dear-0"}).Obj()
	box.Create(t, cache)
	if got := node("cache"); got != "dear-0" {
		t.Fatalf("the cache is on %s", got)
	}
	reader := func(name string) *v1.Pod {
		return sized(name, "", "8").Annotation("berth.dev/near", "app=cache 50GiB/h").Obj()
	}
	for i := range 2 {
		name := fmt.Sprintf("reader-%d", i)
		box.Create(t, reader(name))
		if got := node(name); !strings.HasPrefix(got, "dear-") {
			t.Errorf("%s is on %s, its cache on dear-0", name, got)
		}
	}
	box.KillScheduler(t)
	wants := []string{"dear-", "mixed-", "mixed-", "mixed-", "mixed-", ""}
	for i, want := range wants {
		name := fmt.Sprintf("late-reader-%d", i)
		box.Create(t, reader(name))
		if got := node(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is on %s, want %s: the nearest that is free", name, got, want)
		}
	}
	for i := range 4 {
		box.Create(t, sized(fmt.Sprintf("worker-%d", i), "", "7").Label("pod-group.scheduling.sigs.k8s.io/name", "train").
			Label("pod-group.scheduling.sigs.k8s.io/min-available", "4").Obj())
	}
	for i := range 4 {
		name := fmt.Sprintf("worker-%d", i)
		if got, first := node(name), node("worker-0"); got[:3] != first[:3] {
			t.Errorf("%s is on %s, worker-0 on %s", name, got, first)
		}
	}
	bad := pod("bad", "").Annotation("berth.dev/near", "app=cache 50GB").Obj()
	box.Create(t, bad)
	box.Await(t, "the event that names the annotation", func(ctx context.Context) (bool, error) {
		list, err := box.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=bad"})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if strings.Contains(list.Items[i].Message, `berth.dev/near: "app=cache 50GB" is not a list of label selectors`) {
				return true, nil
			}
		}
		return false, nil
	})
	bad.Annotations["berth.dev/near"] = "app=cache 50GiB/h"
	box.Await(t, "the annotation to be put right", func(ctx context.Context) (bool, error) {
		now, err := box.Client.CoreV1().Pods("default").Get(ctx, "bad", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		now.Annotations["berth.dev/near"] = "app=cache 50GiB/h"
		_, err = box.Client.CoreV1().Pods("default").Update(ctx, now, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	// The node of the cache has seven of its eight cores free.
	if got := node("bad"); got != "dear-0" {
		t.Errorf("the pod whose annotation was put right is on %s, its cache on dear-0", got)
	}
}
