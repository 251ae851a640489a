package release_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// everything switches all parts on.
const everything = "--set=extender.enabled=true,nodeAgent.enabled=true,admission.enabled=true," +
	"networkPolicy.enabled=true," +
	"metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboards.enabled=true," +
	"metrics.readers[0].kind=User,metrics.readers[0].name=p"

// chartWith are the objects of the chart by kind and name.
func chartWith(t *testing.T, args ...string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, object := range unstructuredObjects(t, template(t, append([]string{"--kube-version=1.37.1"}, args...)...)) {
		all[object.GetKind()+" "+object.GetName()] = object
	}
	return all
}

func TestTheChartEmulatesAnAPIServerThatIsOlderThanTheScheduler(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server, set string
		// scheduler and extender are the versions that they emulate; none: that of the build.
		scheduler, extender string
	}{
		"the version that it is built from":    {"1.37.1", "", "", ""},
		"a newer one":                          {"1.38.0", "", "", ""},
		"a candidate of that version":          {"1.37.0-rc.1", "", "", ""},
		"an older one":                         {"1.36.3", "", "1.36", "1.36"},
		"an older one of a provider":           {"v1.35.4-gke.1234", "", "1.35", "1.35"},
		"the oldest":                           {"1.34.0", "", "1.34", "1.34"},
		"a version that the values name":       {"1.36.3", "extraArgs={--emulated-version=1.35,--v=3}", "1.35", "1.36"},
		"other arguments that the values name": {"1.36.3", "extraArgs={--v=3}", "1.36", "1.36"},
		"no arguments at all":                  {"1.36.3", "extraArgs=null", "1.36", "1.36"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := chartWith(t, "--set=extender.enabled=true,nodeAgent.enabled=true", "--set="+tc.set,
				"--kube-version="+tc.server)
			for workload, want := range map[string]string{"Deployment berth-scheduler": tc.scheduler,
				"Deployment berth-extender": tc.extender, "DaemonSet berth-node-agent": ""} {
				var emulated []string
				for _, arg := range container(t, objects[workload])["args"].([]any) {
					if version, found := strings.CutPrefix(arg.(string), "--emulated-version="); found {
						emulated = append(emulated, version)
					}
				}
				assert.Equal(t, workload+" emulates", want, strings.Join(emulated, " and "))
			}
		})
	}
}

// at returns a field of an object, in the notation of a path of names.
func at(t *testing.T, object *unstructured.Unstructured, path ...string) any {
	t.Helper()
	if object == nil {
		t.Fatalf("there is no object with %v", path)
	}
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	require.NoError(t, err)
	return value
}

// container returns the first container of a workload.
func container(t *testing.T, workload *unstructured.Unstructured) map[string]any {
	t.Helper()
	return at(t, workload, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
}

func TestEveryObjectOfTheChartHasTheLabelsOfItsRelease(t *testing.T) {
	t.Parallel()
	version := chartVersion(t)
	want := []string{"berth-" + version, "berth", version, "Helm", "berth"}
	objects := chartWith(t, everything)
	if len(objects) < 60 {
		t.Errorf("the chart has %d objects, want all of its parts", len(objects))
	}
	for name, object := range objects {
		labels := []map[string]string{object.GetLabels()}
		if object.GetKind() == "Deployment" || object.GetKind() == "DaemonSet" {
			template := unstructured.Unstructured{Object: at(t, object, "spec", "template").(map[string]any)}
			labels = append(labels, template.GetLabels())
		}
		for _, of := range labels {
			var got []string
			for _, key := range labelsOfTheRelease {
				got = append(got, of[key])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: labels %q (-want +got):\n%s", name, labelsOfTheRelease, diff)
			}
		}
	}
}

// All parts take the same values for their pods.
func TestTheValuesForPodsReachThePodsOfEachPart(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"extraArgs":         []any{"--v=5"},
		"extraEnv":          []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}},
		"extraVolumes":      []any{map[string]any{"name": "ca", "secret": map[string]any{"secretName": "ca"}}},
		"extraVolumeMounts": []any{map[string]any{"name": "ca", "mountPath": "/ca"}},
		"podAnnotations":    map[string]any{"example.com/a": "b"},
		"podLabels":         map[string]any{"team": "x", "app.kubernetes.io/name": "not-this"},
		"priorityClassName": "own",
		"nodeSelector":      map[string]any{"pool": "system"},
		"tolerations":       []any{map[string]any{"key": "own", "operator": "Exists"}},
		"affinity":          map[string]any{"nodeAffinity": nil, "podAffinity": map[string]any{}},
		"serviceAccount":    map[string]any{"name": "own-account", "annotations": map[string]any{"example.com/role": "r"}},
	}
	with := func(more map[string]any) map[string]any {
		maps.Copy(more, values)
		return more
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	content, err := yaml.Marshal(with(map[string]any{
		"imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"extender":         with(map[string]any{"enabled": true}),
		"nodeAgent":        with(map[string]any{"enabled": true}),
	}))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	objects, shipped := chartWith(t, "--values="+file), chartWith(t, everything)
	for workload, policy := range map[string]string{
		"Deployment berth-scheduler": "berth-scheduler-account", "Deployment berth-extender": "",
		"DaemonSet berth-node-agent": "berth-node-agent",
	} {
		t.Run(workload, func(t *testing.T) {
			t.Parallel()
			pod := at(t, objects[workload], "spec", "template", "spec").(map[string]any)
			was := at(t, shipped[workload], "spec", "template", "spec").(map[string]any)
			got, before := container(t, objects[workload]), container(t, shipped[workload])
			added := func(to any, name string) []any {
				list, _ := to.([]any)
				return append(slices.Clone(list), values[name].([]any)...)
			}
			for what, pair := range map[string][2]any{
				"arguments":   {got["args"], added(before["args"], "extraArgs")},
				"environment": {got["env"], added(before["env"], "extraEnv")},
				"mounts":      {got["volumeMounts"], added(before["volumeMounts"], "extraVolumeMounts")},
				"volumes":     {pod["volumes"], added(was["volumes"], "extraVolumes")},
				"annotation":  {at(t, objects[workload], "spec", "template", "metadata", "annotations", "example.com/a"), "b"},
				"label":       {at(t, objects[workload], "spec", "template", "metadata", "labels", "team"), "x"},
				"own label": {at(t, objects[workload], "spec", "template", "metadata", "labels", "app.kubernetes.io/name"),
					strings.Fields(workload)[1]},
				"priority class": {pod["priorityClassName"], "own"},
				"node selector":  {pod["nodeSelector"], values["nodeSelector"]},
				"tolerations":    {pod["tolerations"], values["tolerations"]},
				"affinity":       {pod["affinity"], map[string]any{"podAffinity": map[string]any{}}},
				"account":        {pod["serviceAccountName"], "own-account"},
				"pull secrets":   {pod["imagePullSecrets"], []any{map[string]any{"name": "registry"}}},
				"annotation of the account": {
					at(t, objects["ServiceAccount own-account"], "metadata", "annotations", "example.com/role"), "r",
				},
			} {
				assert.Equal(t, what, pair[1], pair[0])
			}
			if policy == "" {
				return
			}
			conditions := at(t, objects["ValidatingAdmissionPolicy "+policy], "spec", "matchConditions").([]any)
			want := "request.userInfo.username == 'system:serviceaccount:kube-system:own-account'"
			assert.Equal(t, "the policy is for those of whom holds", want, conditions[0].(map[string]any)["expression"])
		})
	}
	for name, object := range objects {
		subjects, _ := at(t, object, "subjects").([]any)
		for _, subject := range subjects {
			if account := subject.(map[string]any)["name"]; account != "own-account" {
				t.Errorf("%s gives rights to %v", name, account)
			}
		}
	}
}

func TestSwitchesOfTheChartLeaveThingsOut(t *testing.T) {
	t.Parallel()
	shipped := chartWith(t, everything)
	for set, want := range map[string][]string{
		"crds.enabled=false": {"CustomResourceDefinition ippools.berth.dev",
			"CustomResourceDefinition ipreservations.berth.dev", "CustomResourceDefinition placementpolicies.berth.dev",
			"CustomResourceDefinition podgroups.scheduling.x-k8s.io"},
		"podDisruptionBudget.enabled=false": {"PodDisruptionBudget berth-scheduler"},
		"serviceAccount.create=false":       {"ServiceAccount berth-scheduler"},
		"hami.enabled=false": {
			"ClusterRole berth-scheduler-hami",
			"ClusterRoleBinding berth-device-assigner-hami", "ClusterRoleBinding berth-scheduler-hami",
		},
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			left := chartWith(t, everything, "--set="+set)
			var missing []string
			for name := range shipped {
				if left[name] == nil {
					missing = append(missing, name)
				}
			}
			slices.Sort(missing)
			assert.Equal(t, "left out", want, missing)
		})
	}
}

func TestBudgetAndSpreadFollowTheirValues(t *testing.T) {
	t.Parallel()
	objects := chartWith(t, "--set=podDisruptionBudget.maxUnavailable=50%",
		"--set-json=topologySpreadConstraints="+`[{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"},{"topologyKey":"rack","labelSelector":{}}]`)
	if got := at(t, objects["PodDisruptionBudget berth-scheduler"], "spec", "maxUnavailable"); got != "50%" {
		t.Errorf("maxUnavailable is %v, want 50%%", got)
	}
	deployment := objects["Deployment berth-scheduler"]
	want := []any{
		map[string]any{"maxSkew": float64(2), "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
			"labelSelector": at(t, deployment, "spec", "selector")},
		map[string]any{"topologyKey": "rack", "labelSelector": map[string]any{}},
	}
	assert.Equal(t, "constraints", want, at(t, deployment, "spec", "template", "spec", "topologySpreadConstraints"))
}

func TestTheChartHasTheAlertsAndDashboards(t *testing.T) {
	t.Parallel()
	objects := chartWith(t, everything,
		"--set=metrics.prometheusRule.labels.release=x,metrics.dashboards.annotations.grafana_folder=Berth")
	file := func(path ...string) []byte {
		content, err := os.ReadFile(filepath.Join(append([]string{manifests(t), "monitoring"}, path...)...))
		require.NoError(t, err)
		return content
	}
	var rules map[string]any
	require.NoError(t, yaml.Unmarshal(file("rules.yaml"), &rules))
	alerts := objects["PrometheusRule berth"]
	if diff := cmp.Diff(any(rules), at(t, alerts, "spec")); diff != "" || alerts.GetLabels()["release"] != "x" {
		t.Errorf("labels %v; alerts (-shipped +chart):\n%s", alerts.GetLabels(), diff)
	}
	dashboards := objects["ConfigMap berth-dashboards"]
	if dashboards.GetLabels()["grafana_dashboard"] != "1" || dashboards.GetAnnotations()["grafana_folder"] != "Berth" {
		t.Errorf("labels %v, annotations %v of the dashboards", dashboards.GetLabels(), dashboards.GetAnnotations())
	}
	entries, err := os.ReadDir(filepath.Join(manifests(t), "monitoring", "dashboards"))
	require.NoError(t, err)
	shipped := map[string]any{}
	for _, entry := range entries {
		shipped[entry.Name()] = string(file("dashboards", entry.Name()))
	}
	if diff := cmp.Diff(any(shipped), at(t, dashboards, "data")); diff != "" {
		t.Errorf("dashboards (-shipped +chart):\n%s", diff)
	}
}

// The profile of the test is one of the configuration.
func TestTheTestOfTheChartFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	profile := func(name, plugins string) string {
		return "{schedulerName: " + name + ", plugins: {multiPoint: {enabled: [" + plugins + "]}}}"
	}
	for name, tc := range map[string]struct{ profiles, want string }{
		"the first with gangs": {profile("plain", "{name: GPUAware}") + "," + profile("gangs", "{name: Coscheduling}"),
			"schedulerName: gangs"},
		"none": {profile("plain", "{name: GPUAware}"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte("profiles: ["+tc.profiles+"]"), 0o600))
			out, err := exec.CommandContext(t.Context(), box.Tool(t, "helm"), "template", "berth", chart(t),
				"--set-file=config="+file).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, test, found := strings.Cut(string(out), "name: berth-test\n")
			if found != (tc.want != "") || !strings.Contains(test, tc.want) {
				t.Errorf("the test is %q, want one with %q", test, tc.want)
			}
		})
	}
}
