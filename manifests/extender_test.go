package manifests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/harness/require"
)

func TestTheSchedulerOfTheExampleReachesTheExtenderOfTheManifests(t *testing.T) {
	t.Parallel()
	configuration, err := schedulerconfig.Load("extender/stock-scheduler-config.yaml")
	require.NoError(t, err)
	if n := len(configuration.Component.Extenders); n != 1 {
		t.Fatalf("%d extenders", n)
	}
	extender := configuration.Component.Extenders[0]
	var service *corev1.Service
	var deployment *appsv1.Deployment
	for _, object := range build(t, "extender") {
		switch o := object.(type) {
		case *corev1.Service:
			service = o
		case *appsv1.Deployment:
			deployment = o
		}
	}
	host := service.Name + "." + service.Namespace + ".svc"
	if want := fmt.Sprintf("https://%s:%d", host, service.Spec.Ports[0].Port); extender.URLPrefix != want ||
		extender.TLSConfig.ServerName != host {
		t.Errorf("it calls %s as %s, want %s", extender.URLPrefix, extender.TLSConfig.ServerName, want)
	}
	if diff := cmp.Diff(deployment.Spec.Template.Labels, service.Spec.Selector); diff != "" {
		t.Errorf("labels of the pods and selector of the Service (-pods +Service):\n%s", diff)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if !extender.NodeCacheCapable {
		t.Error("the scheduler sends nodes, and the extender reads names")
	}
	// A Deployment that the scheduler can place only when it runs would never run again.
	if len(extender.ManagedResources) == 0 {
		t.Error("the scheduler asks the extender about pods without GPUs, the extender's own among them")
	}
	for name := range container.Resources.Requests {
		if slices.ContainsFunc(strings.Split(name.String(), "/"), func(part string) bool { return part == "gpu" }) {
			t.Errorf("the extender asks for %s", name)
		}
	}
}

func TestTheExtendersConfigurationLoads(t *testing.T) {
	t.Parallel()
	if _, err := schedulerconfig.Load("extender/extender-config.yaml"); err != nil {
		t.Error(err)
	}
}

// The example of the documentation asks for all that the extender of the example answers.
func TestTheConfigurationsOfTheDocumentationLoad(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/extend.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile(`(?s)cat > /tmp/(\w+)\.yaml <<END\n(.*?)\n    END\n`).FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d configurations in docs/extend.md, want 2", len(blocks))
	}
	for _, block := range blocks {
		file := filepath.Join(t.TempDir(), block[1]+".yaml")
		content := strings.ReplaceAll(block[2], "\n    ", "\n")
		require.NoError(t, os.WriteFile(file, []byte(strings.TrimPrefix(content, "    ")), 0o600))
		configuration, err := schedulerconfig.Load(file)
		if err != nil {
			t.Fatalf("%s: %v", block[1], err)
		}
		for _, e := range configuration.Component.Extenders {
			if e.FilterVerb != "filter" || e.PrioritizeVerb != "prioritize" || e.PreemptVerb+e.BindVerb != "" ||
				!e.NodeCacheCapable {
				t.Errorf("%s: verbs %+v", block[1], e)
			}
		}
	}
}
