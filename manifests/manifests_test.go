package manifests_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/test/harness/require"
)

// strict decodes every kind that the manifests use and refuses fields that the kind does not have.
var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(schedulingv1alpha1.AddToScheme(scheme))
	utilruntime.Must(berthv1alpha1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// decode returns the objects of a file of YAML documents.
func decode(t *testing.T, name string, content []byte) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		object, _, err := strict.Decode(doc, nil, nil)
		if group := (&unstructured.Unstructured{}); err != nil && yaml.Unmarshal(doc, &group.Object) == nil {
			// Groups of other projects are read without a type.
			if _, known := read.GroupKindOf(group.GroupVersionKind()); known {
				object, err = group, nil
			}
		}
		if err != nil {
			t.Errorf("decoding %s: %v\n%s", name, err, doc)
			continue
		}
		objects = append(objects, object)
	}
}

// build renders a folder as kubectl apply -k does.
func build(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("building %s: %v", dir, err)
	}
	content, err := resources.AsYaml()
	require.NoError(t, err)
	return decode(t, dir, content)
}

func readFile[T any](t *testing.T, file string) T {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var value T
	if err := yaml.Unmarshal(content, &value); err != nil {
		t.Fatalf("parsing %s: %v", file, err)
	}
	return value
}

func TestEveryManifestHasOnlyFieldsThatItsKindHas(t *testing.T) {
	t.Parallel()
	// Kinds with readers of their own: kustomize, the scheduler, Prometheus and its operator, berth up.
	elsewhere := []string{"kustomization.yaml", "scheduler-config.yaml", "extender-config.yaml",
		"stock-scheduler-config.yaml", "servicemonitor.yaml"}
	foldersElsewhere := []string{"configurations", "monitoring", "nodes"}
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains(foldersElsewhere, path) {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".yaml" || slices.Contains(elsewhere, filepath.Base(path)) {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(decode(t, path, content)) == 0 {
			t.Errorf("%s holds no object", path)
		}
		return nil
	})
	require.NoError(t, err)
	if files < 40 {
		t.Errorf("found %d manifests, want at least 40", files)
	}
}

// The user of the default scheduler has its account, its lease and its rights already.
func TestInPlaceOfTheDefaultSchedulerOnlyFurtherRightsAreApplied(t *testing.T) {
	t.Parallel()
	var got []string
	for _, object := range build(t, "replace-default") {
		accessor, err := meta.Accessor(object)
		require.NoError(t, err)
		got = append(got, object.GetObjectKind().GroupVersionKind().Kind+" "+accessor.GetName())
	}
	slices.Sort(got)
	want := []string{
		"ClusterRole berth-edit",
		"ClusterRole berth-scheduler",
		"ClusterRole berth-scheduler-hami",
		"ClusterRole berth-view",
		"ClusterRoleBinding berth-scheduler",
		"ClusterRoleBinding berth-scheduler-hami",
		"ValidatingAdmissionPolicy berth-scheduler",
		"ValidatingAdmissionPolicy berth-scheduler-account",
		"ValidatingAdmissionPolicyBinding berth-scheduler",
		"ValidatingAdmissionPolicyBinding berth-scheduler-account",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestTheDeploymentMountsTheShippedConfiguration(t *testing.T) {
	t.Parallel()
	var config *corev1.ConfigMap
	var deployment *appsv1.Deployment
	for _, object := range build(t, "base") {
		switch o := object.(type) {
		case *corev1.ConfigMap:
			config = o
		case *appsv1.Deployment:
			deployment = o
		}
	}
	if config == nil || deployment == nil {
		t.Fatal("base has no ConfigMap or no Deployment")
	}
	shipped, err := os.ReadFile("base/scheduler-config.yaml")
	require.NoError(t, err)
	if diff := cmp.Diff(string(shipped), config.Data["scheduler-config.yaml"]); diff != "" {
		t.Errorf("the ConfigMap's content (-file +ConfigMap):\n%s", diff)
	}
	pod := deployment.Spec.Template.Spec
	if got := pod.Volumes[0].ConfigMap.Name; got != config.Name {
		t.Errorf("the Deployment mounts ConfigMap %q, want %q", got, config.Name)
	}
	argument := "--config=" + pod.Containers[0].VolumeMounts[0].MountPath + "/scheduler-config.yaml"
	if !slices.Contains(pod.Containers[0].Args, argument) {
		t.Errorf("the container's args %q lack %q", pod.Containers[0].Args, argument)
	}
}

// profiles are the profiles of a scheduler configuration by name.
func profiles(t *testing.T, file string) map[string]any {
	t.Helper()
	config := readFile[struct{ Profiles []map[string]any }](t, file)
	byName := map[string]any{}
	for _, profile := range config.Profiles {
		byName[profile["schedulerName"].(string)] = profile
	}
	return byName
}

// Operators that write PodGroups for scheduler-plugins, whose type has no minimum, write 0 for "the default".
func TestThePodGroupTakesNoScheduleTimeoutForTheDefault(t *testing.T) {
	t.Parallel()
	crd := readFile[apiextensionsv1.CustomResourceDefinition](t, "crd/scheduling.x-k8s.io_podgroups.yaml")
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.
		OpenAPIV3Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	require.NoError(t, err)
	for seconds, valid := range map[int64]bool{-1: false, 0: true, 60: true} {
		errs := validation.ValidateCustomResource(nil,
			map[string]any{"spec": map[string]any{"minMember": int64(3), "scheduleTimeoutSeconds": seconds}}, validator)
		if (len(errs) == 0) != valid {
			t.Errorf("scheduleTimeoutSeconds %d: errors %v, want it valid: %t", seconds, errs, valid)
		}
	}
}
