package tools_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/pkg/process/crd"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// foreignDefinitionIsNoticed applies a PodGroup definition over ours that has the fields of scheduler-plugins' one, and
// ours again, before a scheduler starts and while a monitor runs.
func foreignDefinitionIsNoticed(t *testing.T, box *box.Box) {
	anybody := rest.CopyConfig(box.Config)
	anybody.Impersonate.UserName = "somebody-without-any-right"
	asked, err := kubernetes.NewForConfig(anybody)
	require.NoError(t, err)
	client := asked.Discovery().RESTClient()
	missing := func(ctx context.Context) []string {
		pruned, err := crd.Check(ctx, client)
		require.NoError(t, err)
		var fields []string
		for _, p := range pruned {
			fields = append(fields, p.Resource+" "+p.Field)
		}
		return fields
	}
	if got := missing(t.Context()); got != nil {
		t.Errorf("of our own definitions the fields %v are said to be missing", got)
	}
	const name = "podgroups.scheduling.x-k8s.io"
	change := func(edit func(status map[string]any)) {
		t.Helper()
		box.Await(t, "the definition to be changed", func(ctx context.Context) (bool, error) {
			definition, err := box.Dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
			status, _, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties",
				"status", "properties")
			edit(status)
			if err := unstructured.SetNestedMap(versions[0].(map[string]any), status, "schema", "openAPIV3Schema", "properties",
				"status", "properties"); err != nil {
				return false, err
			}
			if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
				return false, err
			}
			_, err = box.Dynamic.Resource(definitions).Update(ctx, definition, metav1.UpdateOptions{})
			if errors.IsConflict(err) {
				return false, nil
			}
			return err == nil, err
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	now, ended := clocktesting.NewFakeClock(time.Now()), make(chan struct{})
	go func() {
		defer close(ended)
		crd.Monitor(ctx, now, client)
	}()
	defer func() {
		stop()
		<-ended
	}()
	// monitored steps the monitor's clock until its metric has these fields.
	monitored := func(want []string) {
		t.Helper()
		box.Await(t, "the metric to follow", func(context.Context) (bool, error) {
			now.Step(time.Minute)
			got, err := pruned()
			return cmp.Equal(slices.Sorted(slices.Values(want)), got), err
		})
	}
	var conditions, roles, scheduled any
	change(func(status map[string]any) {
		conditions, roles, scheduled = status["conditions"], status["roles"], status["scheduled"]
		delete(status, "conditions")
		delete(status, "roles")
		delete(status, "scheduled")
	})
	want := []string{name + " status.scheduled", name + " status.roles", name + " status.conditions"}
	box.Await(t, "the fields to be missed", func(ctx context.Context) (bool, error) {
		return cmp.Equal(want, missing(ctx)),
			nil
	})
	monitored(want)
	box.KillScheduler(t)
	box.Await(t, "the next scheduler to say so", func(context.Context) (bool, error) {
		lines, err := os.ReadFile(filepath.Join(box.Dir(), "logs", "scheduler.log"))
		return err == nil && strings.Contains(string(lines), "The API server drops fields that are written"), err
	})
	change(func(status map[string]any) {
		status["conditions"], status["roles"], status["scheduled"] = conditions, roles, scheduled
	})
	box.Await(t, "nothing to be missed", func(ctx context.Context) (bool, error) { return missing(ctx) == nil, nil })
	monitored(nil)
}

// pruned is what the metric says, sorted.
func pruned() ([]string, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, err
	}
	var fields []string
	for _, family := range families {
		if family.GetName() != "berth_field_pruned" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			fields = append(fields, labels["resource"]+" "+labels["field"])
		}
	}
	slices.Sort(fields)
	return fields, nil
}
