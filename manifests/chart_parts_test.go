package manifests_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// alike returns objects by kind and name, without what names a changed configuration: kustomize puts a hash into the name of
// the ConfigMap, and the chart an annotation on the pods.
func alike(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, object := range objects {
		name := object.GetName()
		if base, _, found := strings.Cut(name, "-config"); object.GetKind() == "ConfigMap" && found {
			name = base + "-config"
			object.SetName(name)
		}
		if object.GetKind() == "Deployment" {
			withoutConfigurationName(t, object)
		}
		key := object.GetKind() + " " + object.GetNamespace() + "/" + name
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = object.Object
	}
	return all
}

func withoutConfigurationName(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	template := []string{"spec", "template"}
	unstructured.RemoveNestedField(deployment.Object, append(template, "metadata", "annotations")...)
	volumes, found, err := unstructured.NestedSlice(deployment.Object, append(template, "spec", "volumes")...)
	if err != nil || !found {
		t.Fatalf("%s has no volumes: %v", deployment.GetName(), err)
	}
	for _, volume := range volumes {
		if source, isConfig := volume.(map[string]any)["configMap"].(map[string]any); isConfig {
			base, _, _ := strings.Cut(source["name"].(string), "-config")
			source["name"] = base + "-config"
		}
	}
	if err := unstructured.SetNestedSlice(deployment.Object, volumes, append(template, "spec", "volumes")...); err != nil {
		t.Fatal(err)
	}
}

func TestThePartsOfTheChartFollowItsNamespace(t *testing.T) {
	t.Parallel()
	rendered := string(template(t, "--namespace=elsewhere", "--set=extender.enabled=true,nodeAgent.enabled=true"))
	for _, object := range unstructuredObjects(t, []byte(rendered)) {
		switch object.GetKind() {
		case "Deployment", "DaemonSet", "Service", "ServiceAccount", "ConfigMap", "PodDisruptionBudget":
			if object.GetNamespace() != "elsewhere" {
				t.Errorf("%s %s is in %s, want elsewhere", object.GetKind(), object.GetName(), object.GetNamespace())
			}
		case "Role", "RoleBinding":
			if object.GetNamespace() != "kube-system" {
				t.Errorf("%s %s is in %s, want kube-system, where the leases are", object.GetKind(), object.GetName(), object.GetNamespace())
			}
		}
		subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			t.Fatal(err)
		}
		for _, subject := range subjects {
			if namespace := subject.(map[string]any)["namespace"]; namespace != nil && namespace != "elsewhere" {
				t.Errorf("%s %s gives rights to an account in %v, want elsewhere", object.GetKind(), object.GetName(), namespace)
			}
		}
	}
	if want := "'system:serviceaccount:elsewhere:berth-extender'"; !strings.Contains(rendered, want) {
		t.Errorf("no policy is about %s", want)
	}
}

func TestTheValuesOfThePartsOfTheChartReachTheirPods(t *testing.T) {
	t.Parallel()
	rendered := alike(t, unstructuredObjects(t, template(t, "--set=extender.enabled=true,extender.image.repository=you/extender,extender.image.tag=v2",
		"--set=extender.replicas=3,extender.config=own,extender.resources=null,nodeAgent.enabled=true,nodeAgent.image.repository=you/agent,nodeAgent.image.digest=sha256:"+strings.Repeat("a", 64),
		"--set=nodeAgent.image.pullPolicy=Always,nodeAgent.runtimeClassName=nvidia", "--show-only=templates/extender.yaml", "--show-only=templates/node-agent.yaml")))
	extender := rendered["Deployment kube-system/berth-extender"].(map[string]any)
	agents := rendered["DaemonSet kube-system/berth-node-agent"].(map[string]any)
	config := rendered["ConfigMap kube-system/berth-extender-config"].(map[string]any)
	container := func(object map[string]any) map[string]any {
		containers, _, err := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		return containers[0].(map[string]any)
	}
	for what, pair := range map[string][2]any{
		"image of the extender":         {container(extender)["image"], "you/extender:v2"},
		"replicas of the extender":      {extender["spec"].(map[string]any)["replicas"], float64(3)},
		"configuration of the extender": {strings.TrimSpace(config["data"].(map[string]any)["extender-config.yaml"].(string)), "own"},
		"image of the node agent":       {container(agents)["image"], "you/agent@sha256:" + strings.Repeat("a", 64)},
		"pull policy of the node agent": {container(agents)["imagePullPolicy"], "Always"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if class, _, _ := unstructured.NestedString(agents, "spec", "template", "spec", "runtimeClassName"); class != "nvidia" {
		t.Errorf("the node agent has the runtime class %q, want nvidia", class)
	}
}

func TestTheChartRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Skip("HELM names no helm binary; make verify does")
	}
	for name, tc := range map[string]struct{ args, want string }{
		"policies before Kubernetes 1.36":   {"--set=admission.enabled=true --kube-version=1.35.4", "need Kubernetes 1.36 or newer, this cluster has v1.35.4"},
		"two kinds of anti-affinity":        {"--set=antiAffinity=Hard,affinity.podAntiAffinity.x=y", "want one of the two"},
		"an anti-affinity that is none":     {"--set=antiAffinity=hard", "antiAffinity"},
		"a value of a part that is none":    {"--set=extender.enable=true", "enable"},
		"no extender at all":                {"--set=extender.enabled=true,extender.replicas=0", "replicas"},
		"a digest that is none":             {"--set=image.digest=0.1.0", "digest"},
		"a pull policy that is none":        {"--set=nodeAgent.image.pullPolicy=Sometimes", "pullPolicy"},
		"a switch that is a word":           {"--set-string=nodeAgent.enabled=yes", "nodeAgent"},
		"admission policies without a word": {"--set=admission.enabled=1", "admission"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"template", "berth", "../charts/berth"}, strings.Fields(tc.args)...)
			out, err := exec.CommandContext(t.Context(), helm, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("helm says (error %v) what does not name %q:\n%.2000s", err, tc.want, out)
			}
		})
	}
}

// The Prometheus Operator would ignore a field that its kind does not have.
func TestTheServiceMonitorHasTheFieldsOfItsKind(t *testing.T) {
	t.Parallel()
	crd := read[apiextensionsv1.CustomResourceDefinition](t, "testdata/monitoring.coreos.com_servicemonitors.yaml")
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	problems := func(object *unstructured.Unstructured) (found []string) {
		for _, err := range validation.ValidateCustomResource(nil, object.Object, validator) {
			found = append(found, err.Error())
		}
		pruned := pruning.PruneWithOptions(object.DeepCopy().Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		return append(found, pruned...)
	}
	check := func(t *testing.T, objects []*unstructured.Unstructured) {
		t.Helper()
		monitors := 0
		for _, object := range objects {
			if object.GetKind() != "ServiceMonitor" {
				continue
			}
			monitors++
			if found := problems(object); len(found) > 0 {
				t.Errorf("the ServiceMonitor has mistakes: %q", found)
			}
			wrong := object.DeepCopy()
			endpoints, _, _ := unstructured.NestedSlice(wrong.Object, "spec", "endpoints")
			endpoints[0].(map[string]any)["interval"] = "often"
			endpoints[0].(map[string]any)["intervall"] = "30s"
			if err := unstructured.SetNestedSlice(wrong.Object, endpoints, "spec", "endpoints"); err != nil {
				t.Fatal(err)
			}
			if found := problems(wrong); len(found) != 2 {
				t.Errorf("a wrong interval and an unknown field give %q", found)
			}
		}
		if monitors != 1 {
			t.Errorf("%d ServiceMonitors, want 1", monitors)
		}
	}
	t.Run("kustomize", func(t *testing.T) {
		t.Parallel()
		check(t, kustomized(t, "service-monitor"))
	})
	t.Run("chart", func(t *testing.T) {
		t.Parallel()
		check(t, unstructuredObjects(t, template(t, "--set=metrics.serviceMonitor.enabled=true,metrics.serviceMonitor.interval=90s,metrics.serviceMonitor.labels.release=x",
			"--show-only=templates/metrics.yaml")))
	})
}
