// Package release_test tries what a release consists of as its users do: images, chart, manifests and the commands of
// pages.
package release_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// unstructuredObjects are the documents of a YAML file, of any kind.
func unstructuredObjects(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &object.Object); err != nil {
			t.Fatalf("parsing a document: %v\n%s", err, doc)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// manifests is the folder of the manifests.
func manifests(t *testing.T) string {
	t.Helper()
	return filepath.Join(box.Root(t), "manifests")
}

// kustomized renders a folder of the manifests as kubectl apply -k does.
func kustomized(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	return built(t, filepath.Join(manifests(t), dir))
}

// built renders a folder, kinds without a Go type here included.
func built(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("building %s: %v", folder, err)
	}
	content, err := resources.AsYaml()
	require.NoError(t, err)
	return unstructuredObjects(t, content)
}

// applier sends objects as kubectl apply --server-side does.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(t *testing.T, config *rest.Config) *applier {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))}
}

func (a *applier) apply(t *testing.T, object *unstructured.Unstructured, dryRun ...string) error {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	content, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	resource := a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	_, err = resource.Patch(t.Context(), object.GetName(), types.ApplyPatchType, content,
		metav1.PatchOptions{FieldManager: "kubectl", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
	return err
}

// applyAll applies a folder of the manifests.
func (a *applier) applyAll(t *testing.T, dir string) {
	t.Helper()
	for _, object := range kustomized(t, dir) {
		if err := a.apply(t, object); err != nil {
			t.Fatalf("applying %s %s of %s: %v", object.GetKind(), object.GetName(), dir, err)
		}
	}
}

// kustomizations are the folders that kubectl apply -k takes.
func kustomizations(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := fs.WalkDir(os.DirFS(manifests(t)), ".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "kustomization.yaml" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	require.NoError(t, err)
	if len(dirs) < 10 {
		t.Fatalf("found %d kustomizations, want at least 10: %q", len(dirs), dirs)
	}
	return dirs
}

// serviceMonitor is a kind of the Prometheus Operator, which the API server does not serve without it.
var serviceMonitor = schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}

// TestOnABareControlPlane has the tests of what is installed on a cluster without Berth. They follow each other: each
// leaves it without.
//
//nolint:tparallel // see above
func TestOnABareControlPlane(t *testing.T) {
	t.Parallel()
	cluster := box.Start(t, "", sandbox.Options{Bare: true, NoKubelet: true})
	t.Run("it has nothing of Berth", func(t *testing.T) { nothingOfBerth(t, cluster) })
	t.Run("the chart is installed and upgraded and rolled back and removed",
		func(t *testing.T) { installsAndRemoves(t, cluster) })
	t.Run("every kustomization is accepted", func(t *testing.T) { acceptsKustomizations(t, cluster) })
}

func nothingOfBerth(t *testing.T, cluster *box.Box) {
	roles, err := cluster.Client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, role := range roles.Items {
		if strings.HasPrefix(role.Name, "berth") {
			t.Errorf("there is a ClusterRole %s", role.Name)
		}
	}
	groups, err := cluster.Client.Discovery().ServerGroups()
	require.NoError(t, err)
	for _, group := range groups.Groups {
		if group.Name == "scheduling.x-k8s.io" || group.Name == "berth.dev" {
			t.Errorf("the API group %s is served", group.Name)
		}
	}
	if scheduler, err := cluster.PID("scheduler"); err == nil {
		t.Errorf("a scheduler runs as process %d", scheduler)
	}
}

// appliedByBothSides applies the base as kubectl does by default, and then on the server's side: what the API server
// has filled in meanwhile must not be a conflict. It leaves the objects behind.
func appliedByBothSides(t *testing.T, cluster *box.Box) {
	for _, mode := range [][]string{nil, {"--server-side"}} {
		for _, dir := range []string{"base", "extender", "node-agent", "admission"} {
			args := append([]string{"apply", "--kubeconfig", cluster.Kubeconfig(), "-k", filepath.Join(manifests(t), dir)},
				mode...)
			if out, err := exec.CommandContext(t.Context(), box.Tool(t, "kubectl"), args...).CombinedOutput(); err != nil {
				t.Errorf("kubectl apply %s of %s: %v\n%s", mode, dir, err, out)
			}
		}
	}
}

func acceptsKustomizations(t *testing.T, cluster *box.Box) {
	a := newApplier(t, cluster.Config)
	a.applyAll(t, "crd")
	for _, dir := range kustomizations(t) {
		for _, object := range kustomized(t, dir) {
			if object.GroupVersionKind().GroupKind() == serviceMonitor {
				continue
			}
			if err := a.apply(t, object, metav1.DryRunAll); err != nil {
				t.Errorf("%s: applying %s %s: %v", dir, object.GetKind(), object.GetName(), err)
			}
		}
	}
	appliedByBothSides(t, cluster)
	wrong := kustomized(t, "network-policy")[0]
	wrong.Object["spec"].(map[string]any)["policyType"] = "Ingress"
	if err := a.apply(t, wrong, metav1.DryRunAll); err == nil || !strings.Contains(err.Error(), "policyType") {
		t.Errorf("applying a NetworkPolicy with the field policyType: error %v, want one that names it", err)
	}
}
