package plugins_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// addresses is a test's part of a control plane with the shipped configuration.
type addresses struct{ *box.Box }

func (a *addresses) resource(kind string) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: "berth.dev", Version: "v1alpha1",
		Kind: kind})
	return a.Dynamic.Resource(resource)
}

// apply creates an object and returns its version.
func (a *addresses) apply(t *testing.T, kind, name, spec string) (version string, err error) {
	t.Helper()
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &fields))
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1", "kind": kind,
		"spec": fields}}
	object.SetName(name)
	made, err := a.resource(kind).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return made.GetResourceVersion(), nil
}

// mustApply returns when the scheduler has heard of the object: pods that come later find it.
func (a *addresses) mustApply(t *testing.T, kind, name, spec string) {
	t.Helper()
	version, err := a.apply(t, kind, name, spec)
	require.NoError(t, err)
	a.AwaitHeard(t, strings.ToLower(kind)+"s", version)
}

func podNamed(name, pool string) *v1.Pod {
	p := pod(name, "berth-scheduler")
	if pool != "" {
		p.Annotations["berth.dev/ip-pool"] = pool
	}
	return p
}

// placed waits until the pod has a node, and returns its address.
func (a *addresses) placed(t *testing.T, name string) string {
	t.Helper()
	return a.Bound(t, name, "").Annotations["berth.dev/ip-address"]
}

func (a *addresses) released(t *testing.T, name string) {
	t.Helper()
	a.AwaitGone(t, a.resource("IPReservation"), name)
}

// customResources are the definitions of custom resources.
var customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// testAddresses is about what the API in memory does not have: the rules of the CRDs, those of policies too, and what
// kubectl prints of them, two schedulers at a time, and CRDs that go and come back.
func testAddresses(t *testing.T, b *box.Box) {
	a := &addresses{b.Part(t, "addresses", "shapes: [{name: n, count: 2, allocatable: {cpu: \"16\", memory: 64Gi}}]")}
	t.Run("the API server refuses what makes no sense", a.refuses)
	t.Run("two schedulers give no address twice", a.rivals)
	t.Run("without the CRDs, pods that ask wait and others run", a.crds)
}

func (a *addresses) refuses(t *testing.T) {
	pod := `pod: {namespace: default, name: p}`
	for _, test := range []struct{ kind, name, spec, says string }{
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, pod: {namespace: default, statefulSet: s}}`, "spec.pod.name"},
		{"IPReservation", "ip-10-0-0-2", `{address: 10.0.0.1, ` + pod + `}`, "the name must be"},
		{"IPReservation", "ip-10-0-0-256", `{address: 10.0.0.256, ` + pod + `}`, "canonical"},
		{"IPReservation", "ip-2001-db8--0-1", `{address: "2001:db8::0:1", ` + pod + `}`, "canonical"},
		{"IPReservation", "ip-10-0-0-1", `{address: 10.0.0.1, releasePolicy: Never, ` + pod + `}`, "Unsupported value"},
		{"IPPool", "p", `{subnets: []}`, "at least 1"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.0/33]}]}`, "a range is"},
		{"IPPool", "p", `{subnets: [{ranges: [10.0.0.1-x]}]}`, "a range is"},
		{"PlacementPolicy", "p", `{}`, "licenses, datasets or compliance"},
		{"PlacementPolicy", "p", `{licenses: [{name: m, count: 1, perPod: 2}]}`, "perPod needs pods"},
		{"PlacementPolicy", "p", `{datasets: [{name: d, mode: Required, weight: 2, nodes: {expression: "true"}}]}`,
			"weight needs mode Preferred"},
		{"PlacementPolicy", "p", `{datasets: [{name: d, nodes: {}}]}`, "needs selector or expression"},
		{"PlacementPolicy", "p", `{licenses: [{name: m, count: 1, pods: {}}]}`, "needs namespaceSelector"},
		{"PlacementPolicy", "p", `{compliance: {pods: {expression: "true"}}}`, "needs rules or defaultAction"},
		{"PlacementPolicy", "p", `{licenses: [{name: m, count: -1}]}`, "greater than or equal to 0"},
		{"PlacementPolicy", "p", `{licenses: [{name: m, count: 1}, {name: m, count: 2}]}`, "Duplicate value"},
		{"PlacementPolicy", "p", `{compliance: {defaultAction: Maybe}}`, "Unsupported value"},
	} {
		if _, err := a.apply(t, test.kind, test.name, test.spec); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %s: error %v, want one that says %q", test.kind, test.spec, err, test.says)
		}
	}
	a.mustApply(t, "IPReservation", "ip-2001-db8--0", `{address: "2001:db8::", `+pod+`}`)
	require.NoError(t, a.resource("IPReservation").Delete(t.Context(), "ip-2001-db8--0", metav1.DeleteOptions{}))
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

// rivalScheduler starts a scheduler beside the other one that waits for no lease, and returns what ends it. It reserves
// addresses and nothing else: what other plugins report of pods would be said twice.
func (a *addresses) rivalScheduler(t *testing.T) (stop func()) {
	t.Helper()
	data, err := os.ReadFile(sandbox.Layout(a.Dir()).SchedulerConfig())
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal(data, &fields))
	fields["leaderElection"] = map[string]any{"leaderElect": false}
	reserving := map[string]any{"enabled": []any{map[string]any{"name": "IPReservation"}}}
	fields["profiles"] = []any{map[string]any{"schedulerName": contested,
		"plugins": map[string]any{"multiPoint": reserving}}}
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
	a.mustApply(t, "IPPool", "six", `{subnets: [{ranges: [10.6.0.1]}]}`)
	crds := a.Dynamic.Resource(customResources)
	names := []string{"ippools.berth.dev", "ipreservations.berth.dev"}
	for _, name := range names {
		require.NoError(t, crds.Delete(t.Context(), name, metav1.DeleteOptions{}))
		a.AwaitGone(t, crds, name)
	}
	a.Create(t, podNamed("meanwhile", ""))
	a.placed(t, "meanwhile")
	a.Create(t, podNamed("early", "six"))
	a.Pending(t, "early", "there is no IPPool six")
	a.KillScheduler(t)
	a.Create(t, podNamed("plain", ""))
	if got := a.placed(t, "plain"); got != "" {
		t.Errorf("a pod that asks for nothing has address %q", got)
	}
	a.Create(t, podNamed("asks", "six"))
	a.Pending(t, "asks", "there is no IPPool six")
	for _, name := range names {
		data, err := manifests.Files.ReadFile("crd/berth.dev_" + strings.TrimSuffix(name, ".berth.dev") + ".yaml")
		require.NoError(t, err)
		crd := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(data, &crd.Object))
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
	if first, second := a.placed(t, "early"), a.placed(t, "asks"); first == second || first == "" || second == "" {
		t.Errorf("the pods that waited have addresses %q and %q", first, second)
	}
	a.shown(t, "six", "six 2 2 0 True")
}
