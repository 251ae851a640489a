package release_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// release is the chart in a cluster without a kubelet: its pods never start, so nothing here waits for them.
type release struct {
	*box.Box
	binary, chart string
	env           []string
}

// newRelease has a home of its own for helm. Nothing is installed yet.
func newRelease(t *testing.T, cluster *box.Box) *release {
	t.Helper()
	home := t.TempDir()
	return &release{
		Box: cluster, binary: box.Tool(t, "helm"), chart: chart(t),
		env: append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home),
	}
}

// helm runs a command of helm on the release and returns what it prints.
func (r *release) helm(t *testing.T, args ...string) string {
	t.Helper()
	args = append(args, "--namespace", "kube-system", "--kubeconfig", r.Kubeconfig())
	command := exec.CommandContext(t.Context(), r.binary, args...)
	command.Env = r.env
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (r *release) config(t *testing.T) string {
	t.Helper()
	configs := r.Client.CoreV1().ConfigMaps("kube-system")
	config, err := configs.Get(t.Context(), "berth-scheduler-config", metav1.GetOptions{})
	require.NoError(t, err)
	return config.Data["scheduler-config.yaml"]
}

func (r *release) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	deployments := r.Client.AppsV1().Deployments("kube-system")
	deployment, err := deployments.Get(t.Context(), "berth-scheduler", metav1.GetOptions{})
	require.NoError(t, err)
	return deployment
}

func installsAndRemoves(t *testing.T, cluster *box.Box) {
	r := newRelease(t, cluster)
	shipped, err := os.ReadFile(filepath.Join(manifests(t), "base", "scheduler-config.yaml"))
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	other := strings.Replace(string(shipped), "percentageOfNodesToScore: 100", "percentageOfNodesToScore: 50", 1)
	if other == string(shipped) {
		t.Fatal("the shipped configuration has no percentageOfNodesToScore to change")
	}
	require.NoError(t, os.WriteFile(changed, []byte(other), 0o600))

	for _, want := range []string{"helm test berth --namespace kube-system", "without a registry"} {
		if notes := r.helm(t, "install", "berth", r.chart, "--dry-run=server"); !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	notes := r.helm(t, "install", "berth", r.chart, "--set", "image.repository=example.com/berth-scheduler")
	if strings.Contains(notes, "WARNING") {
		t.Errorf("the notes of an installation with the defaults warn:\n%s", notes)
	}
	if diff := cmp.Diff(string(shipped), r.config(t)); diff != "" {
		t.Errorf("configuration after the installation (-shipped +got):\n%s", diff)
	}
	installed := r.deployment(t)
	group := r.podGroup(t)

	r.helm(t, "upgrade", "berth", r.chart, "--reset-then-reuse-values", "--set-file", "config="+changed)
	if diff := cmp.Diff(other, r.config(t)); diff != "" {
		t.Errorf("configuration after the upgrade (-changed +got):\n%s", diff)
	}
	before, after := installed.Spec.Template.Annotations["checksum/config"],
		r.deployment(t).Spec.Template.Annotations["checksum/config"]
	if before == "" || before == after {
		t.Errorf("a changed configuration does not roll the pods: its checksum was %q and is %q", before, after)
	}
	if most := installed.Spec.Strategy.RollingUpdate.MaxUnavailable.String(); most != "0" {
		t.Errorf("%s pods may be away in a rollout, want 0", most)
	}
	r.helm(t, "upgrade", "berth", r.chart, "--reset-then-reuse-values",
		"--set", "image.tag=next,networkPolicy.enabled=true,metrics.service=true",
		"--set", "antiAffinity=Hard,extender.enabled=true,nodeAgent.enabled=true,admission.enabled=true")
	pods := r.deployment(t).Spec.Template
	if image := pods.Spec.Containers[0].Image; image != "example.com/berth-scheduler:next" {
		t.Errorf("after the second upgrade the image is %q", image)
	}
	if _, err := r.Client.AppsV1().Deployments("kube-system").Get(t.Context(), "berth-extender",
		metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := r.Client.AppsV1().DaemonSets("kube-system").Get(t.Context(), "berth-node-agent",
		metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	admission := r.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	if _, err := admission.Get(t.Context(), "berth-pod-devices", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	policies := r.Client.NetworkingV1().NetworkPolicies("kube-system")
	if _, err := policies.Get(t.Context(), "berth-scheduler", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	r.helm(t, "rollback", "berth", "1")
	if diff := cmp.Diff(string(shipped), r.config(t)); diff != "" {
		t.Errorf("configuration after the rollback (-shipped +got):\n%s", diff)
	}
	if diff := cmp.Diff(installed.Spec.Template, r.deployment(t).Spec.Template); diff != "" {
		t.Errorf("pods after the rollback (-installed +got):\n%s", diff)
	}

	r.helm(t, "uninstall", "berth")
	r.removed(t)
	if diff := cmp.Diff(group, r.groupUID(t)); diff != "" {
		t.Errorf("the PodGroup's uid (-before +after the removal):\n%s", diff)
	}
	// The definitions that were kept are taken into the next release.
	notes = r.helm(t, "install", "berth", r.chart, "--set", "crds.keep=false")
	if want := "to remove this release deletes every PodGroup"; !strings.Contains(notes, want) {
		t.Errorf("the notes lack %q:\n%s", want, notes)
	}
	r.helm(t, "uninstall", "berth")
	definitions := newApplier(t, r.Config).client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io",
		Version: "v1", Resource: "customresourcedefinitions"})
	var left *unstructured.UnstructuredList
	t.Cleanup(func() {
		for i := 0; t.Failed() && left != nil && i < len(left.Items); i++ {
			definition := left.Items[i]
			conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
			t.Logf("definition %s: deleted at %v, finalizers %q, conditions %v %v", definition.GetName(),
				definition.GetDeletionTimestamp(),
				definition.GetFinalizers(), conditions, err)
		}
	})
	r.Await(t, "the definitions to be gone", func(ctx context.Context) (_ bool, err error) {
		if left, err = definitions.List(ctx, metav1.ListOptions{}); err != nil {
			return false, err
		}
		// The API server may have failed to list the objects of a definition while its storage was set up. It tries again
		// ever more seldom, and at once when the definition changes.
		for i := range left.Items {
			patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"test/looked": %q}}}`, time.Now().Format(time.RFC3339))
			_, err := definitions.Patch(ctx, left.Items[i].GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return len(left.Items) == 0, nil
	})
}

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

// podGroup creates a PodGroup and returns its uid.
func (r *release) podGroup(t *testing.T) string {
	t.Helper()
	group := fstest.MapFS{"group.yaml": {Data: []byte(`apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 2}
`)}}
	r.Await(t, "the API of PodGroups", func(ctx context.Context) (bool, error) {
		_, err := sandbox.CreateFiles(ctx, r.Config, "default", group, "group.yaml")
		return err == nil, nil
	})
	return r.groupUID(t)
}

func (r *release) groupUID(t *testing.T) string {
	t.Helper()
	groups := newApplier(t, r.Config).client.Resource(podGroups).Namespace("default")
	group, err := groups.Get(t.Context(), "train", metav1.GetOptions{})
	require.NoError(t, err)
	return string(group.GetUID())
}

// removed checks that nothing of the chart but the CRDs is left.
func (r *release) removed(t *testing.T) {
	t.Helper()
	a := newApplier(t, r.Config)
	for _, dir := range []string{"base", "metrics", "network-policy", "extender", "node-agent", "admission"} {
		for _, object := range kustomized(t, dir) {
			mapping, err := a.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
			require.NoError(t, err)
			name := object.GetName()
			if object.GetKind() == "ConfigMap" {
				name = withoutHash(name)
			}
			r.Await(t, object.GetKind()+" "+name+" to be gone", func(ctx context.Context) (bool, error) {
				_, err := a.client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			})
		}
	}
}
