package rules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"
)

// custom is a kind that a CustomResourceDefinition defines.
type custom struct {
	gvr    schema.GroupVersionResource
	schema *structuralschema.Structural
	object rest.RESTCreateUpdateStrategy
	status rest.RESTUpdateStrategy
}

// readDefinitions reads every CustomResourceDefinition of a folder, and returns them as well.
func readDefinitions(folder string) (map[schema.GroupVersionResource]custom, []*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, nil, fmt.Errorf("finding CustomResourceDefinitions in %s: %w", folder, errors.Join(err, os.ErrNotExist))
	}
	kinds := map[schema.GroupVersionResource]custom{}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &definition); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file, err)
		}
		objects = append(objects, object)
		for i := range definition.Spec.Versions {
			kind, err := newCustom(&definition, &definition.Spec.Versions[i])
			if err != nil {
				return nil, nil, fmt.Errorf("reading %s: %w", file, err)
			}
			kinds[kind.gvr] = kind
		}
	}
	return kinds, objects, nil
}

func newCustom(definition *apiextensionsv1.CustomResourceDefinition,
	version *apiextensionsv1.CustomResourceDefinitionVersion) (custom, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema,
		&internal, nil); err != nil {
		return custom{}, fmt.Errorf("converting the schema of %s: %w", version.Name, err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return custom{}, fmt.Errorf("reading the schema of %s: %w", version.Name, err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return custom{}, fmt.Errorf("reading the schema of %s: %w", version.Name, err)
	}
	gvr := schema.GroupVersionResource{Group: definition.Spec.Group, Version: version.Name,
		Resource: definition.Spec.Names.Plural}
	strategy := customresource.NewStrategy(unstructuredscheme.NewUnstructuredObjectTyper(),
		definition.Spec.Scope == apiextensionsv1.NamespaceScoped, gvr.GroupVersion().WithKind(definition.Spec.Names.Kind),
		validator, nil, structural, &apiextensions.CustomResourceSubresourceStatus{}, nil, nil)
	return custom{gvr, structural, strategy, customresource.NewStatusStrategy(strategy)}, nil
}

// complete drops the fields that the schema does not have and fills in its defaults.
func (c custom) complete(obj runtime.Object) *unstructured.Unstructured {
	u := obj.(*unstructured.Unstructured).DeepCopy()
	pruning.Prune(u.Object, c.schema, true)
	defaulting.Default(u.Object, c.schema)
	return u
}

func (c custom) create(obj runtime.Object) (runtime.Object, error) {
	u := c.complete(obj)
	return u, rest.BeforeCreate(c.object, c.context("", u), u) //nolint:wrapcheck // it is the answer
}

func (c custom) update(subresource string, obj, old runtime.Object) (runtime.Object, error) {
	u, strategy := c.complete(obj), rest.RESTUpdateStrategy(c.object)
	if subresource == "status" {
		strategy = c.status
	}
	//nolint:wrapcheck // it is the answer
	return u, rest.BeforeUpdate(strategy, c.context(subresource, u), u, old.DeepCopyObject())
}

func (c custom) context(subresource string, obj runtime.Object) context.Context {
	return contextOf(c.gvr, subresource, obj)
}
