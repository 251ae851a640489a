package manifests_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
			delete(o.Spec.Template.Annotations, "checksum/config")
			if len(o.Spec.Template.Annotations) == 0 {
				o.Spec.Template.Annotations = nil
			}
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		named[object.GetObjectKind().GroupVersionKind().Kind+" "+accessor.GetNamespace()+"/"+accessor.GetName()] = object
	}
	return named
}

// make verify builds the pinned helm, which takes minutes, and names it here.
func TestTheChartWithItsDefaultsRendersTheBase(t *testing.T) {
	t.Parallel()
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Skip("HELM names no helm binary; make verify does")
	}
	var failure strings.Builder
	command := exec.CommandContext(t.Context(), helm, "template", "berth", "../charts/berth", "--namespace", "kube-system")
	command.Stderr = &failure
	rendered, err := command.Output()
	if err != nil {
		t.Fatalf("rendering the chart: %v\n%s", err, failure.String())
	}
	chart, base := byName(t, decode(t, "the chart", rendered)), byName(t, build(t, "base"))
	if diff := cmp.Diff(base, chart); diff != "" {
		t.Errorf("objects (-base +chart):\n%s", diff)
	}
}
