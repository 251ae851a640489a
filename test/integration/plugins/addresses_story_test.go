package plugins_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// deadNode is a member of a StatefulSet whose node dies: it comes back on another node of the rack, with its address.
func (a *addresses) deadNode(t *testing.T) {
	a.mustApply(t, "IPPool", "three", `{subnets: [{domain: {key: rack, value: r3}, ranges: [10.7.0.5-10.7.0.9]}]}`)
	labels := map[string]string{"app": "kv"}
	set, err := a.Client.AppsV1().StatefulSets(a.Namespace).Create(t.Context(),
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "kv"}, Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), ServiceName: "kv", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podNamed("x", "").Spec}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	member := func(ordinal int) *v1.Pod {
		p := a.member(t, set, ordinal)
		p.Annotations["berth.dev/ip-pool"] = "three"
		return p
	}
	a.Create(t, member(0))
	had := a.placed(t, "kv-0", "")
	if err := a.Client.CoreV1().Nodes().Delete(t.Context(), a.Pod(t, "kv-0").Spec.NodeName,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.Remove(t, "kv-0")
	// Others take addresses while the member is away.
	a.Create(t, podNamed("thief", "three"))
	if got := a.placed(t, "thief", ""); got == had {
		t.Errorf("another pod gets the address %s of the member", got)
	}
	a.Create(t, member(0))
	if got := a.placed(t, "kv-0", ""); got != had || had == "" {
		t.Errorf("the member has address %q, and had %q", got, had)
	}
	a.Remove(t, "thief")
	a.released(t, "ip-10-7-0-6")
}

// retains is Retain, which keeps the address of a pod that is gone until the reservation is deleted.
func (a *addresses) retains(t *testing.T) {
	a.mustApply(t, "IPPool", "keep", `{releasePolicy: Retain, subnets: [{ranges: [10.8.0.1]}]}`)
	a.Create(t, podNamed("kept", "keep"))
	a.placed(t, "kept", "")
	a.Remove(t, "kept")
	a.Create(t, podNamed("other", "keep"))
	a.Pending(t, "other", "pool keep has no free address")
	a.Create(t, podNamed("kept", ""))
	if got := a.placed(t, "kept", ""); got != "10.8.0.1" {
		t.Errorf("the pod that comes back has address %q", got)
	}
	a.Remove(t, "kept")
	a.shown(t, "keep", "keep 1 1 0 True")
	if err := a.resource("IPReservation").Delete(t.Context(), "ip-10-8-0-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := a.placed(t, "other", ""); got != "10.8.0.1" {
		t.Errorf("the pod that waited has address %q", got)
	}
	a.Remove(t, "other")
	a.mustApply(t, "IPPool", "wrong", `{subnets: [{ranges: [10.8.0.9-10.8.0.1]}]}`)
	a.shown(t, "wrong", "wrong 0 0 0 False")
	a.mustApply(t, "IPPool", "common", `{subnets: [{ranges: [10.8.0.0/30]}]}`)
	a.shown(t, "common", "common 2 1 1 True")
}

// shown waits for a row of `kubectl get ippools`, without its last column, which is the age.
func (a *addresses) shown(t *testing.T, pool, want string) {
	t.Helper()
	got := ""
	// A row is what the API server makes of the pool when it is asked.
	a.Await(t, "the row "+want, func(ctx context.Context) (bool, error) {
		data, err := a.Client.CoreV1().RESTClient().Get().AbsPath("/apis/berth.dev/v1alpha1/ippools/"+pool).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
		if err != nil {
			return false, err
		}
		var table metav1.Table
		if err := yaml.Unmarshal(data, &table); err != nil {
			return false, err
		}
		var cells []string
		for i, column := range table.ColumnDefinitions {
			if column.Priority == 0 && column.Name != "Age" {
				cells = append(cells, fmt.Sprint(table.Rows[0].Cells[i]))
			}
		}
		if now := strings.Join(cells, " "); now != got {
			got = now
			t.Log(got)
		}
		return got == want, nil
	})
}

// rivals is two schedulers that both schedule, as for a moment at a hand-over. 30 pods ask for 20 addresses.
func (a *addresses) rivals(t *testing.T) {
	a.mustApply(t, "IPPool", "raced", `{subnets: [{ranges: [10.9.0.1-10.9.0.20]}]}`)
	stop := a.rivalScheduler(t)
	const pods, addresses = 30, 20
	for i := range pods {
		p := podNamed(fmt.Sprint("raced-", i), "raced")
		p.Spec.SchedulerName = contested
		a.Create(t, p)
	}
	var running strs
	a.AwaitPods(t, "as many pods to run as there are addresses", func(pods []*v1.Pod) (bool, error) {
		var err error
		running, err = byAddress(pods)
		return len(running) == addresses, err
	})
	a.AwaitObjects(t, a.resource("IPReservation"), "one reservation for each",
		func(reservations []*unstructured.Unstructured) (bool, error) {
			reserved := strs{}
			for _, r := range reservations {
				if pool, _, _ := unstructured.NestedString(r.Object, "spec", "pool"); pool == "raced" {
					name, _, _ := unstructured.NestedString(r.Object, "spec", "pod", "name")
					address, _, _ := unstructured.NestedString(r.Object, "spec", "address")
					reserved[address] = name
				}
			}
			return cmp.Equal(reserved, running), nil
		})
	a.AwaitPods(t, "the same to run still", func(pods []*v1.Pod) (bool, error) {
		now, err := byAddress(pods)
		if err == nil && !cmp.Equal(now, running) {
			err = fmt.Errorf("pods by address: %s", cmp.Diff(running, now))
		}
		return true, err
	})
	stop()
	for i := range pods {
		a.Remove(t, fmt.Sprint("raced-", i))
	}
	a.released(t, "ip-10-9-0-1")
}

// byAddress returns the raced pods that run by their addresses. No two may have the same.
func byAddress(pods []*v1.Pod) (strs, error) {
	running := strs{}
	for _, p := range pods {
		if !strings.HasPrefix(p.Name, "raced-") || p.Spec.NodeName == "" {
			continue
		}
		address := p.Annotations["berth.dev/ip-address"]
		if other, twice := running[address]; twice || address == "" {
			return nil, fmt.Errorf("pods %s and %s have address %q", p.Name, other, address)
		}
		running[address] = p.Name
	}
	return running, nil
}

// contested is the profile that the rival schedules. No test beside this one uses it.
const contested = "scheduler-plugins-scheduler"

// rivalScheduler starts a scheduler beside the other one that waits for no lease, and returns what ends it.
func (a *addresses) rivalScheduler(t *testing.T) (stop func()) {
	t.Helper()
	data, err := os.ReadFile(sandbox.Layout(a.Dir()).SchedulerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	fields["leaderElection"] = map[string]any{"leaderElect": false}
	fields["profiles"] = slices.DeleteFunc(fields["profiles"].([]any), func(profile any) bool {
		return profile.(map[string]any)["schedulerName"] != contested
	})
	if data, err = yaml.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	rival := a.StartScheduler(t, "rival", write(t, string(data)))
	return func() {
		_ = rival.Process.Kill()
		_ = rival.Wait() // it was killed
	}
}

// crds is a cluster whose CRDs are removed while the scheduler runs, and come back.
func (a *addresses) crds(t *testing.T) {
	crds := a.Dynamic.Resource(customResources)
	names := []string{"ippools.berth.dev", "ipreservations.berth.dev"}
	for _, name := range names {
		if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.AwaitGone(t, crds, name)
	}
	a.Create(t, podNamed("meanwhile", ""))
	a.placed(t, "meanwhile", "")
	a.Create(t, podNamed("early", "six"))
	a.Pending(t, "early", "there is no IPPool six")
	a.KillScheduler(t)
	a.Create(t, podNamed("plain", ""))
	if got := a.placed(t, "plain", ""); got != "" {
		t.Errorf("a pod that asks for nothing has address %q", got)
	}
	a.Create(t, podNamed("asks", "six"))
	a.Pending(t, "asks", "there is no IPPool six")
	for _, name := range names {
		data, err := manifests.Files.ReadFile("crd/berth.dev_" + strings.TrimSuffix(name, ".berth.dev") + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &crd.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	a.Await(t, "the CRDs to be served", func(context.Context) (bool, error) {
		_, err := a.apply(t, "IPPool", "six", `{subnets: [{ranges: [10.6.1.1-10.6.1.2]}]}`)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
	if first, second := a.placed(t, "early", ""), a.placed(t, "asks", ""); first == second || first == "" || second == "" {
		t.Errorf("the pods that waited have addresses %q and %q", first, second)
	}
}
