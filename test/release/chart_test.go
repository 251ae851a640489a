package release_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

func chart(t *testing.T) string {
	t.Helper()
	return filepath.Join(box.Root(t), "charts", "berth")
}

// chartVersion is the version of the chart, which is that of the images, too.
func chartVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart(t), "Chart.yaml"))
	require.NoError(t, err)
	var metadata struct{ Version string }
	if err := yaml.Unmarshal(content, &metadata); err != nil || metadata.Version == "" {
		t.Fatalf("the chart has the version %q (error %v)", metadata.Version, err)
	}
	return metadata.Version
}

// template renders the chart.
func template(t *testing.T, args ...string) []byte {
	t.Helper()
	var failure strings.Builder
	command := exec.CommandContext(t.Context(), box.Tool(t, "helm"),
		append([]string{"template", "berth", chart(t), "--namespace", "kube-system", "--skip-tests"}, args...)...)
	command.Stderr = &failure
	rendered, err := command.Output()
	if err != nil {
		t.Fatalf("rendering the chart: %v\n%s", err, failure.String())
	}
	return rendered
}

func TestTheChartIsWellFormed(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), box.Tool(t, "helm"), "lint", "--strict",
		chart(t)).CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
}

func TestTheChartRendersTheKustomizations(t *testing.T) {
	t.Parallel()
	const kube = "--kube-version=1.37.1"
	for name, tc := range map[string]struct {
		args      []string
		templates []string
		folder    string
	}{
		"the defaults":    {args: []string{"--set=crds.enabled=false"}, folder: "base"},
		"the definitions": {[]string{"--set=crds.keep=false"}, []string{"crds"}, "crd"},
		"the network policy": {[]string{"--set=networkPolicy.enabled=true,extender.enabled=true,nodeAgent.enabled=true"},
			[]string{"networkpolicy"}, "network-policy"},
		"the Services": {[]string{"--set=metrics.service=true,extender.enabled=true,nodeAgent.enabled=true"},
			[]string{"metrics"}, "metrics"},
		"the service monitors": {
			[]string{"--set=metrics.serviceMonitor.enabled=true,extender.enabled=true,nodeAgent.enabled=true"},
			[]string{"metrics"}, "service-monitor"},
		"the extender":           {[]string{"--set=extender.enabled=true"}, []string{"extender"}, "extender"},
		"the node agent":         {[]string{"--set=nodeAgent.enabled=true"}, []string{"node-agent"}, "node-agent"},
		"the admission policies": {[]string{"--set=admission.enabled=true", kube}, []string{"admission"}, "admission"},
		"hard anti-affinity":     {[]string{"--set=antiAffinity=Hard"}, []string{"scheduler"}, "hard-anti-affinity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := tc.args
			for _, file := range tc.templates {
				args = append(args, "--show-only=templates/"+file+".yaml")
			}
			if diff := cmp.Diff(alike(t, kustomized(t, tc.folder)),
				alike(t, unstructuredObjects(t, template(t, args...)))); diff != "" {
				t.Errorf("objects (-kustomize +chart):\n%s", diff)
			}
		})
	}
}

// alike returns objects by kind and name, without what names a changed configuration: kustomize puts a hash into the
// name of the ConfigMap, and the chart an annotation on the pods. The labels of the release are left out, and whom the
// policy of an account is about, which the chart knows exactly.
func alike(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" {
			object.SetName(withoutHash(object.GetName()))
		}
		if object.GetKind() == "Deployment" {
			withoutConfigurationName(t, object)
		}
		withoutLabelsOfTheRelease(object.Object)
		withoutAccount(object.Object)
		key := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = object.Object
	}
	return all
}

// withoutHash returns the name that a ConfigMap has in the chart, for one of kustomize.
func withoutHash(name string) string {
	return regexp.MustCompile(`-config-[a-z0-9]+$`).ReplaceAllString(name, "-config")
}

// labelsOfTheRelease are those of every object and pod of the chart.
var labelsOfTheRelease = []string{
	"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
	"app.kubernetes.io/part-of",
}

func withoutLabelsOfTheRelease(object map[string]any) {
	for _, at := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		labels, found, err := unstructured.NestedFieldNoCopy(object, at...)
		if !found || err != nil {
			continue
		}
		maps.DeleteFunc(labels.(map[string]any),
			func(key string, _ any) bool { return slices.Contains(labelsOfTheRelease, key) })
		if len(labels.(map[string]any)) == 0 {
			unstructured.RemoveNestedField(object, at...)
		}
	}
}

func withoutAccount(object map[string]any) {
	conditions, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "matchConditions")
	if list, ok := conditions.([]any); ok {
		for _, condition := range list {
			if strings.HasPrefix(condition.(map[string]any)["name"].(string), "is-the-") {
				delete(condition.(map[string]any), "expression")
			}
		}
	}
}

func withoutConfigurationName(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	template := []string{"spec", "template"}
	unstructured.RemoveNestedField(deployment.Object, append(template, "metadata", "annotations")...)
	volumes, found, err := unstructured.NestedSlice(deployment.Object, append(template, "spec", "volumes")...)
	if err == nil && !found {
		return // it has no configuration
	}
	if err != nil {
		t.Fatalf("%s: %v", deployment.GetName(), err)
	}
	for _, volume := range volumes {
		if source, isConfig := volume.(map[string]any)["configMap"].(map[string]any); isConfig {
			source["name"] = withoutHash(source["name"].(string))
		}
	}
	require.NoError(t, unstructured.SetNestedSlice(deployment.Object, volumes, append(template, "spec", "volumes")...))
}

func TestThePartsOfTheChartFollowItsNamespace(t *testing.T) {
	t.Parallel()
	rendered := string(template(t, "--namespace=elsewhere", "--kube-version=1.37.1",
		"--set=extender.enabled=true,nodeAgent.enabled=true,admission.enabled=true,metrics.serviceMonitor.enabled=true"))
	for _, object := range unstructuredObjects(t, []byte(rendered)) {
		switch object.GetKind() {
		case "Deployment", "DaemonSet", "Service", "ServiceAccount", "ConfigMap", "PodDisruptionBudget", "ServiceMonitor",
			"Secret":
			if object.GetNamespace() != "elsewhere" {
				t.Errorf("%s %s is in %s, want elsewhere", object.GetKind(), object.GetName(), object.GetNamespace())
			}
		case "Role", "RoleBinding":
			if object.GetNamespace() != "kube-system" {
				t.Errorf("%s %s is in %s, want kube-system, where the leases are", object.GetKind(), object.GetName(),
					object.GetNamespace())
			}
		}
		subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
		require.NoError(t, err)
		for _, subject := range subjects {
			ours := subject.(map[string]any)["name"] != "hami-device-plugin"
			if namespace := subject.(map[string]any)["namespace"]; ours && namespace != nil && namespace != "elsewhere" {
				t.Errorf("%s %s gives rights to an account in %v, want elsewhere", object.GetKind(), object.GetName(), namespace)
			}
		}
	}
	// Accounts of the cluster itself do not move.
	for _, want := range []string{"elsewhere:berth-scheduler", "elsewhere:berth-node-agent",
		"kube-system:daemon-set-controller"} {
		if want = "'system:serviceaccount:" + want + "'"; !strings.Contains(rendered, want) {
			t.Errorf("no policy is about %s", want)
		}
	}
	if want := "serverName: berth-extender.elsewhere.svc"; !strings.Contains(rendered, want) {
		t.Errorf("no ServiceMonitor has %s", want)
	}
}

func TestTheValuesOfThePartsOfTheChartReachTheirPods(t *testing.T) {
	t.Parallel()
	objects := chartWith(t, "--set=extender.enabled=true,extender.image.repository=you/extender,extender.image.tag=v2",
		"--set=extender.replicas=3,extender.config=own,extender.resources=null,nodeAgent.enabled=true",
		"--set=nodeAgent.image.repository=you/agent,nodeAgent.image.digest=sha256:"+strings.Repeat("a", 64),
		"--set=nodeAgent.image.pullPolicy=Always,nodeAgent.runtimeClassName=nvidia")
	extender, agents := objects["Deployment berth-extender"], objects["DaemonSet berth-node-agent"]
	for what, pair := range map[string][2]any{
		"image of the extender":    {container(t, extender)["image"], "you/extender:v2"},
		"replicas of the extender": {at(t, extender, "spec", "replicas"), float64(3)},
		"configuration of the extender": {
			at(t, objects["ConfigMap berth-extender-config"], "data", "extender-config.yaml"), "own\n",
		},
		"image of the node agent":         {container(t, agents)["image"], "you/agent@sha256:" + strings.Repeat("a", 64)},
		"pull policy of the node agent":   {container(t, agents)["imagePullPolicy"], "Always"},
		"runtime class of the node agent": {at(t, agents, "spec", "template", "spec", "runtimeClassName"), "nvidia"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
}

// Values without a default of the chart leave the rest of what they are in.
func TestAntiAffinityNeedsNoOtherAffinity(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"affinity.nodeAffinity=null", "affinity=null"} {
		for _, anti := range []string{"Hard", "Soft"} {
			deployment := chartWith(t, "--set=antiAffinity="+anti+","+args)["Deployment berth-scheduler"]
			affinity, _ := at(t, deployment, "spec", "template", "spec", "affinity").(map[string]any)
			if _, has := affinity["podAntiAffinity"]; has != (anti == "Hard") || len(affinity) > 1 ||
				affinity["nodeAffinity"] != nil {
				t.Errorf("antiAffinity=%s,%s: the affinity is %v", anti, args, affinity)
			}
		}
	}
}

func TestTheChartRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	helm := box.Tool(t, "helm")
	for name, tc := range map[string]struct{ args, want string }{
		"policies before Kubernetes 1.36": {"--set=admission.enabled=true --kube-version=1.35.4",
			"need Kubernetes 1.36 or newer, this cluster has v1.35.4"},
		"two kinds of anti-affinity": {"--set=antiAffinity=Hard,affinity.podAntiAffinity.x=y", "want one of the two"},
		"no port of the API server": {"--set=networkPolicy.enabled=true,networkPolicy.apiServerPorts=null",
			"apiServerPorts"},
		"an anti-affinity that is none":     {"--set=antiAffinity=hard", "antiAffinity"},
		"a value of a part that is none":    {"--set=extender.enable=true", "enable"},
		"no extender at all":                {"--set=extender.enabled=true,extender.replicas=0", "replicas"},
		"a digest that is none":             {"--set=image.digest=0.1.0", "digest"},
		"a pull policy that is none":        {"--set=nodeAgent.image.pullPolicy=Sometimes", "pullPolicy"},
		"a switch that is a word":           {"--set-string=nodeAgent.enabled=yes", "nodeAgent"},
		"an argument that is none":          {"--set=extraArgs={v=2}", "extraArgs"},
		"a secret without its name":         {"--set=imagePullSecrets={registry}", "imagePullSecrets"},
		"a budget that is none":             {"--set=podDisruptionBudget.maxUnavailable=half", "maxUnavailable"},
		"an account that is none":           {"--set=serviceAccount.name=A'b", "serviceAccount"},
		"admission policies without a word": {"--set=admission.enabled=1", "admission"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"template", "berth", chart(t)}, strings.Fields(tc.args)...)
			out, err := exec.CommandContext(t.Context(), helm, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("helm says (error %v) what does not name %q:\n%.2000s", err, tc.want, out)
			}
		})
	}
}

func TestTheValuesOfTheServiceMonitorReachIt(t *testing.T) {
	t.Parallel()
	monitors := 0
	for name, object := range chartWith(t, everything, "--set=metrics.serviceMonitor.interval=90s",
		"--set=metrics.serviceMonitor.labels.release=x") {
		if object.GetKind() != "ServiceMonitor" {
			continue
		}
		monitors++
		interval := at(t, object, "spec", "endpoints").([]any)[0].(map[string]any)["interval"]
		if interval != "90s" || object.GetLabels()["release"] != "x" {
			t.Errorf("%s has the interval %v and the labels %v", name, interval, object.GetLabels())
		}
	}
	if monitors != 3 {
		t.Errorf("there are %d ServiceMonitors, want one for each part", monitors)
	}
	// Only parts that run are scraped.
	for name := range chartWith(t, "--set=metrics.serviceMonitor.enabled=true") {
		if strings.Contains(name, "extender") || strings.Contains(name, "agent") {
			t.Errorf("%s is there without its part", name)
		}
	}
}
