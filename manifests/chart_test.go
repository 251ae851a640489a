package manifests_test

import (
	"encoding/base64"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/require"
)

func TestTheSchemaOfTheChartHasAllValues(t *testing.T) {
	t.Parallel()
	type schema struct {
		Properties, Definitions map[string]schema
		Ref                     string `json:"$ref"`
	}
	whole := readFile[schema](t, "../charts/berth/values.schema.json")
	var known func(prefix string, s schema) []string
	known = func(prefix string, s schema) (names []string) {
		for name, property := range s.Properties {
			if shared, is := whole.Definitions[strings.TrimPrefix(property.Ref, "#/definitions/")]; is {
				property = shared
			} else if property.Ref != "" {
				t.Errorf("%s%s refers to %s, which is not there", prefix, name, property.Ref)
			}
			if len(property.Properties) > 0 {
				names = append(names, known(prefix+name+".", property)...)
			} else if prefix+name != "global" {
				names = append(names, prefix+name)
			}
		}
		return names
	}
	inSchema := known("", whole)
	slices.Sort(inSchema)
	if diff := cmp.Diff(inSchema, values(t)); diff != "" {
		t.Errorf("values (-values.schema.json +values.yaml):\n%s", diff)
	}
}

func TestThePageOfTheChartHasAllOfItsValues(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../charts/berth/README.md")
	require.NoError(t, err)
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
		t.Errorf("values (-values.yaml +charts/berth/README.md):\n%s", diff)
	}
}

// values are the names of the chart's values. Those whose content is the user's to give in whole count as one.
func values(t *testing.T) []string {
	t.Helper()
	whole := []string{"resources", "affinity", "labels"}
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
	walk("", readFile[map[string]any](t, "../charts/berth/values.yaml"))
	slices.Sort(names)
	return names
}

// The Prometheus Operator would ignore a field that its kind does not have.
func TestTheServiceMonitorHasTheFieldsOfItsKind(t *testing.T) {
	t.Parallel()
	crd := readFile[apiextensionsv1.CustomResourceDefinition](t, "testdata/monitoring.coreos.com_servicemonitors.yaml")
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.
		OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	require.NoError(t, err)
	validator, _, err := validation.NewSchemaValidator(&internal)
	require.NoError(t, err)
	problems := func(object map[string]any) (found []string) {
		for _, err := range validation.ValidateCustomResource(nil, object, validator) {
			found = append(found, err.Error())
		}
		pruned := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), structural, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		return append(found, pruned...)
	}
	content, err := os.ReadFile("service-monitor/servicemonitor.yaml")
	require.NoError(t, err)
	documents := strings.Split(string(content), "\n---\n")
	if len(documents) != 3 {
		t.Errorf("there are %d ServiceMonitors, want one for each part", len(documents))
	}
	var monitor map[string]any
	for _, document := range documents {
		monitor = nil
		require.NoError(t, yaml.Unmarshal([]byte(document), &monitor))
		if found := problems(monitor); len(found) > 0 {
			t.Errorf("the ServiceMonitor %v has mistakes: %q", monitor["metadata"], found)
		}
	}
	endpoint := monitor["spec"].(map[string]any)["endpoints"].([]any)[0].(map[string]any)
	endpoint["interval"], endpoint["intervall"] = "often", "30s"
	if found := problems(monitor); len(found) != 2 {
		t.Errorf("a wrong interval and an unknown field give %q", found)
	}
}

// Helm's tools show the icon from a URL, and this one needs no server.
func TestTheIconOfTheChartIsItsFile(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../charts/berth/icon.svg")
	require.NoError(t, err)
	icon, err := base64.StdEncoding.DecodeString(found(t, "../charts/berth/Chart.yaml", `(?m)^icon: data:image/svg\+xml;base64,(\S+)$`))
	require.NoError(t, err)
	if diff := cmp.Diff(string(content), string(icon)); diff != "" {
		t.Errorf("icon (-icon.svg +Chart.yaml):\n%s", diff)
	}
}

// The chart lets the scheduler emulate an API server that is older than this.
func TestTheChartNamesTheKubernetesThatTheSchedulerIsBuiltFrom(t *testing.T) {
	t.Parallel()
	want := found(t, "../go.mod", `(?m)^\tk8s.io/kubernetes v([0-9]+\.[0-9]+)\.`)
	if got := found(t, "../charts/berth/Chart.yaml", `(?m)^  berth.dev/kubernetes: "(\S+)"$`); got != want {
		t.Errorf("the chart names Kubernetes %s, and the scheduler is built from %s", got, want)
	}
}
