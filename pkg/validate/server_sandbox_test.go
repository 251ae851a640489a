package validate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// TestARealAPIServerRefusesTheSame creates the objects of the other tests on an API server, without keeping them.
func TestARealAPIServerRefusesTheSame(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	box := box.Start(t, "", sandbox.Options{NoKubelet: true, NoScheduler: true})
	for _, namespace := range []string{"nn", metav1.NamespaceDefault} {
		if _, err := box.Client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		if _, err := box.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	groups, err := restmapper.GetAPIGroupResources(box.Client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, tt := range slices.Concat(serverCases(), typeCases()) {
		if strings.Contains(tt.text, "Thing") || strings.Contains(tt.text, configurationKind) || strings.HasPrefix(tt.text, "shapes:") {
			continue // defined by a file, or nothing of an API server's
		}
		var refusals []string
		for _, object := range decoded(t, tt.text) {
			asked++
			if err := create(ctx, client, mapper, object); err != nil {
				refusals = append(refusals, err.Error())
			}
		}
		found := slices.ContainsFunc(tt.want, func(finding string) bool { return strings.Contains(finding, ": error: ") })
		if found != (len(refusals) > 0) {
			t.Errorf("%s: an error is found: %v; the server says %q", tt.name, found, refusals)
		}
	}
	if asked < 25 {
		t.Errorf("only %d objects were created", asked)
	}
}

// decoded are the documents of a file, as Kubernetes reads them.
func decoded(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	documents := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var node yaml.Node
		err := documents.Decode(&node)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		value, err := nodeValue(node.Content[0])
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: value.(map[string]any)})
	}
}

func create(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
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
	_, err = resource.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}
