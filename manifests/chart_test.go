package manifests_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// byName gives objects a key that the chart and the base share: they name a changed configuration in different ways.
func byName(t *testing.T, objects []runtime.Object) map[string]runtime.Object {
	t.Helper()
	named := map[string]runtime.Object{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			o.Name = "berth-scheduler-config"
		case *appsv1.Deployment:
			o.Spec.Template.Spec.Volumes[0].ConfigMap.Name = "berth-scheduler-config"
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		named[object.GetObjectKind().GroupVersionKind().Kind+" "+accessor.GetNamespace()+"/"+accessor.GetName()] = object
	}
	return named
}

// template renders the chart. make verify builds the pinned helm, which takes minutes, and names it here.
func template(t *testing.T, args ...string) []byte {
	t.Helper()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Skip("HELM names no helm binary; make verify does")
	}
	var failure strings.Builder
	args = append([]string{"template", "berth", "../charts/berth", "--namespace", "kube-system"}, args...)
	command := exec.CommandContext(t.Context(), helm, args...)
	command.Stderr = &failure
	rendered, err := command.Output()
	if err != nil {
		t.Fatalf("rendering the chart: %v\n%s", err, failure.String())
	}
	return rendered
}

func TestTheChartWithItsDefaultsRendersTheBase(t *testing.T) {
	t.Parallel()
	chart, base := byName(t, decode(t, "the chart", template(t))), byName(t, build(t, "base"))
	if diff := cmp.Diff(base, chart); diff != "" {
		t.Errorf("objects (-base +chart):\n%s", diff)
	}
}

func TestTheOptionsOfTheChartRenderTheirKustomizations(t *testing.T) {
	t.Parallel()
	const kube = "--kube-version=1.37.1"
	for name, tc := range map[string]struct {
		args      []string
		templates []string
		folders   []string
	}{
		"the network policy":     {[]string{"--set=networkPolicy.enabled=true"}, []string{"networkpolicy"}, []string{"network-policy"}},
		"the service monitor":    {[]string{"--set=metrics.serviceMonitor.enabled=true"}, []string{"metrics"}, []string{"service-monitor"}},
		"the extender":           {[]string{"--set=extender.enabled=true"}, []string{"extender"}, []string{"extender"}},
		"the node agent":         {[]string{"--set=nodeAgent.enabled=true"}, []string{"node-agent"}, []string{"node-agent"}},
		"the admission policies": {[]string{"--set=admission.enabled=true", kube}, []string{"admission"}, []string{"admission"}},
		"hard anti-affinity":     {[]string{"--set=antiAffinity=Hard"}, []string{"deployment", "config", "rbac", "policy"}, []string{"hard-anti-affinity"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := tc.args
			for _, file := range tc.templates {
				args = append(args, "--show-only=templates/"+file+".yaml")
			}
			var folders []*unstructured.Unstructured
			for _, folder := range tc.folders {
				folders = append(folders, kustomized(t, folder)...)
			}
			if diff := cmp.Diff(alike(t, folders), alike(t, unstructuredObjects(t, template(t, args...)))); diff != "" {
				t.Errorf("objects (-kustomize +chart):\n%s", diff)
			}
		})
	}
}

func TestTheSchemaOfTheChartHasAllValues(t *testing.T) {
	t.Parallel()
	type schema struct{ Properties map[string]schema }
	var known func(prefix string, s schema) []string
	known = func(prefix string, s schema) (names []string) {
		for name, property := range s.Properties {
			if len(property.Properties) > 0 {
				names = append(names, known(prefix+name+".", property)...)
			} else if prefix+name != "global" {
				names = append(names, prefix+name)
			}
		}
		return names
	}
	inSchema := known("", read[schema](t, "../charts/berth/values.schema.json"))
	slices.Sort(inSchema)
	if diff := cmp.Diff(inSchema, values(t)); diff != "" {
		t.Errorf("values (-values.schema.json +values.yaml):\n%s", diff)
	}
}

func TestThePageOfTheInstallationHasAllValuesOfTheChart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(page)) {
		if first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |"); strings.HasPrefix(line, "| `") {
			for name := range strings.SplitSeq(first, ", ") {
				listed = append(listed, strings.Trim(name, "`"))
			}
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(values(t), listed); diff != "" {
		t.Errorf("values (-values.yaml +docs/install.md):\n%s", diff)
	}
}

// values are the names of the chart's values. Those whose content is the user's to give in whole count as one.
func values(t *testing.T) []string {
	t.Helper()
	whole := []string{"resources", "affinity"}
	var names []string
	var walk func(prefix string, value map[string]any)
	walk = func(prefix string, value map[string]any) {
		for name, v := range value {
			if inner, group := v.(map[string]any); group && len(inner) > 0 && !slices.Contains(whole, name) {
				walk(prefix+name+".", inner)
			} else {
				names = append(names, prefix+name)
			}
		}
	}
	walk("", read[map[string]any](t, "../charts/berth/values.yaml"))
	slices.Sort(names)
	return names
}
