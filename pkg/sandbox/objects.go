package sandbox

import (
	"context"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	sigsyaml "sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/yamldoc"
)

// CreateFiles creates the objects of the YAML files at paths in files. See CreateObjects.
func CreateFiles(
	ctx context.Context, config *rest.Config, namespace string, files fs.FS, paths ...string,
) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		read, err := ReadObjects(files, path)
		if err != nil {
			return nil, err
		}
		objects = append(objects, read...)
	}
	return CreateObjects(ctx, config, namespace, objects...)
}

// CreateObjects creates objects of any kind in their order, and returns them as the API server stored them. Namespaced
// objects without a namespace are created in the given one. Unknown fields are errors.
func CreateObjects(
	ctx context.Context, config *rest.Config, namespace string, objects ...*unstructured.Unstructured,
) ([]*unstructured.Unstructured, error) {
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	var created []*unstructured.Unstructured
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return created, fmt.Errorf("creating %s %s: %w", kind.Kind, object.GetName(), err)
		}
		resource := client.Resource(mapping.Resource)
		var target dynamic.ResourceInterface = resource
		if mapping.Scope.Name() == "namespace" {
			if object.GetNamespace() == "" {
				object.SetNamespace(namespace)
			}
			target = resource.Namespace(object.GetNamespace())
		}
		stored, err := target.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			return created, fmt.Errorf("creating %s %s: %w", kind.Kind, object.GetName(), err)
		}
		created = append(created, stored)
	}
	return created, nil
}

// ReadObjects reads the objects of a YAML file of any number of documents.
func ReadObjects(files fs.FS, path string) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(files, path)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, doc := range yamldoc.Split(data) {
		var object unstructured.Unstructured
		if err := sigsyaml.Unmarshal(doc.Text, &object.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if object.Object != nil { // else it has comments only
			objects = append(objects, &object)
		}
	}
	return objects, nil
}
