package ipreservation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// deadNode is a member of a StatefulSet whose node dies: it comes back on another node of the rack, with its address.
func (w *world) deadNode(t *testing.T) {
	w.mustApply(t, "IPPool", "three", `{subnets: [{domain: {key: rack, value: r3}, ranges: [10.7.0.5-10.7.0.9]}]}`)
	labels := map[string]string{"app": "kv"}
	set, err := w.Client.AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "kv"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](0), ServiceName: "kv", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podNamed("x", "").Spec}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	member := func(ordinal int) *v1.Pod {
		p := w.member(t, set, ordinal)
		p.Annotations["berth.dev/ip-pool"] = "three"
		return p
	}
	w.Create(t, member(0))
	had := w.placed(t, "kv-0", "")
	p, err := w.Client.CoreV1().Pods("default").Get(t.Context(), "kv-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Client.CoreV1().Nodes().Delete(t.Context(), p.Spec.NodeName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Remove(t, "kv-0")
	// Others take addresses while the member is away.
	w.Create(t, podNamed("thief", "three"))
	if got := w.placed(t, "thief", ""); got == had {
		t.Errorf("another pod gets the address %s of the member", got)
	}
	w.Create(t, member(0))
	if got := w.placed(t, "kv-0", ""); got != had || had == "" {
		t.Errorf("the member has address %q, and had %q", got, had)
	}
	w.Remove(t, "thief")
	w.released(t, "ip-10-7-0-6")
}

// policies is Retain, which keeps the address of a pod that is gone until somebody deletes the reservation.
func (w *world) policies(t *testing.T) {
	w.mustApply(t, "IPPool", "keep", `{releasePolicy: Retain, subnets: [{ranges: [10.8.0.1]}]}`)
	w.Create(t, podNamed("kept", "keep"))
	w.placed(t, "kept", "")
	w.Remove(t, "kept")
	w.Create(t, podNamed("other", "keep"))
	w.Pending(t, "other", "pool keep has no free address")
	w.Create(t, podNamed("kept", ""))
	if got := w.placed(t, "kept", ""); got != "10.8.0.1" {
		t.Errorf("the pod that comes back has address %q", got)
	}
	w.Remove(t, "kept")
	w.shown(t, "keep", "keep 1 1 0 True Usable Retain")
	if err := w.resource("IPReservation").Delete(t.Context(), "ip-10-8-0-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.placed(t, "other", ""); got != "10.8.0.1" {
		t.Errorf("the pod that waited has address %q", got)
	}
	w.Remove(t, "other")
	w.mustApply(t, "IPPool", "wrong", `{subnets: [{ranges: [10.8.0.9-10.8.0.1]}]}`)
	w.shown(t, "wrong", "wrong 0 0 0 False Invalid OnStatefulSetDeletion")
	w.mustApply(t, "IPPool", "common", `{subnets: [{ranges: [10.8.0.0/30]}]}`)
	w.shown(t, "common", "common 2 1 1 True Overlaps OnStatefulSetDeletion")
	w.shown(t, "keep", "keep 1 1 0 True Overlaps Retain")
}

// shown waits for a row of `kubectl get ippools`, without its last column, which is the age.
func (w *world) shown(t *testing.T, pool, want string) {
	t.Helper()
	got := ""
	w.Await(t, "the row "+want, func(ctx context.Context) (bool, error) {
		data, err := w.Client.CoreV1().RESTClient().Get().AbsPath("/apis/berth.dev/v1alpha1/ippools/"+pool).
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

// replicas is two schedulers that both schedule, as for a moment at a hand-over. 30 pods ask for 20 addresses.
func (w *world) replicas(t *testing.T) {
	w.mustApply(t, "IPPool", "raced", `{subnets: [{ranges: [10.9.0.1-10.9.0.20]}]}`)
	stop := w.secondScheduler(t)
	const pods, addresses = 30, 20
	for i := range pods {
		w.Create(t, podNamed(fmt.Sprint("raced-", i), "raced"))
	}
	w.Await(t, "as many pods to run as there are addresses", func(ctx context.Context) (bool, error) {
		running, err := w.running(ctx)
		return len(running) == addresses, err
	})
	w.Await(t, "one reservation for each", func(ctx context.Context) (bool, error) {
		list, err := w.resource("IPReservation").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		reserved := map[string]string{}
		for _, r := range list.Items {
			if pool, _, _ := unstructured.NestedString(r.Object, "spec", "pool"); pool == "raced" {
				name, _, _ := unstructured.NestedString(r.Object, "spec", "pod", "name")
				address, _, _ := unstructured.NestedString(r.Object, "spec", "address")
				reserved[address] = name
			}
		}
		running, err := w.running(ctx)
		if err != nil || len(running) != addresses {
			return false, fmt.Errorf("%d addresses are in use: %w", len(running), err)
		}
		return cmp.Equal(reserved, running), nil
	})
	stop()
	for i := range pods {
		w.Remove(t, fmt.Sprint("raced-", i))
	}
	w.released(t, "ip-10-9-0-1")
}

// running returns the pods that run by their addresses. No two may have the same.
func (w *world) running(ctx context.Context) (map[string]string, error) {
	list, err := w.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	running := map[string]string{}
	for i := range list.Items {
		p := &list.Items[i]
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

// secondScheduler starts a scheduler beside the other one that waits for no lease, and returns what ends it.
func (w *world) secondScheduler(t *testing.T) func() {
	t.Helper()
	data, err := os.ReadFile(sandbox.Layout(w.Dir()).SchedulerConfig())
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	fields["leaderElection"] = map[string]any{"leaderElect": false}
	if data, err = yaml.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, log := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "log")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	berth, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, (&sandbox.Options{Binary: berth}).SchedulerBinary(), "--config="+file, "--secure-port=0", "--v=3",
		"--feature-gates=NominatedNodeNameForExpectation=false")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}
	t.Cleanup(cancel)
	w.Await(t, "the second scheduler", func(context.Context) (bool, error) {
		text, err := os.ReadFile(log)
		return strings.Contains(string(text), "Handlers synced"), err
	})
	return stop
}

// crds is a cluster whose CRDs are removed while the scheduler runs, and come back.
func (w *world) crds(t *testing.T) {
	crds := w.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	names := []string{"ippools.berth.dev", "ipreservations.berth.dev"}
	for _, name := range names {
		if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Await(t, "the CRD to go", func(ctx context.Context) (bool, error) {
			_, err := crds.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	}
	w.Create(t, podNamed("meanwhile", ""))
	w.placed(t, "meanwhile", "")
	w.Create(t, podNamed("early", "six"))
	w.Pending(t, "early", "there is no IPPool six")
	w.KillScheduler(t)
	w.Create(t, podNamed("plain", ""))
	if got := w.placed(t, "plain", ""); got != "" {
		t.Errorf("a pod that asks for nothing has address %q", got)
	}
	w.Create(t, podNamed("asks", "six"))
	w.Pending(t, "asks", "there is no IPPool six")
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
	w.Await(t, "the CRDs to be served", func(context.Context) (bool, error) {
		err := w.apply(t, "IPPool", "six", `{subnets: [{ranges: [10.6.1.1-10.6.1.2]}]}`)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
	if first, second := w.placed(t, "early", ""), w.placed(t, "asks", ""); first == second || first == "" || second == "" {
		t.Errorf("the pods that waited have addresses %q and %q", first, second)
	}
}
