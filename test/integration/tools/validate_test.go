package tools_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
)

// serverRefusesWhatIsFound creates the objects in which `berth validate` finds errors, and those in which it finds
// none, without keeping them.
func serverRefusesWhatIsFound(t *testing.T, shared *box.Box) {
	ctx := t.Context()
	if _, err := shared.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nn"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(shared.Client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	archive, err := txtar.ParseFile(filepath.Join(box.Root(t), "pkg", "validate", "testdata", "server.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for i := 0; i < len(archive.Files); i += 2 { // the next one has the findings, which the unit tests compare
		name, text := archive.Files[i].Name, archive.Files[i].Data
		asked++
		found := bytes.Contains(archive.Files[i+1].Data, []byte(": error: "))
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			t.Fatal(err)
		}
		if refusal := create(ctx, shared.Dynamic, mapper, &object); found != (refusal != nil) {
			t.Errorf("%s: an error is found: %v; the server says %q", name, found, refusal)
		}
	}
	if asked < 25 {
		t.Errorf("only %d objects were created", asked)
	}
}

func create(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper,
	object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
		FieldValidation: metav1.FieldValidationStrict})
	return err
}
