package admit

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
)

// definitionKind is the kind of the objects that define others.
const definitionKind = "CustomResourceDefinition"

var (
	definition       = apiextensions.Kind(definitionKind)
	definitionScheme = func() *runtime.Scheme {
		s := runtime.NewScheme()
		install.Install(s)
		return s
	}()
	definitions        = serializer.NewCodecFactory(definitionScheme).UniversalDecoder()
	definitionStrategy = rest.RESTCreateStrategy(customresourcedefinition.NewStrategy(definitionScheme))
)

// customKind is one version of a custom resource.
type customKind struct {
	schema   *structuralschema.Structural
	strategy rest.RESTCreateStrategy
}

// Define lets the server serve the kind of a CustomResourceDefinition in all its versions.
func (s *Server) Define(d *apiextensionsv1.CustomResourceDefinition) error {
	d = d.DeepCopy()
	definitionScheme.Default(d)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := definitionScheme.Convert(d, internal, nil); err != nil {
		return fmt.Errorf("converting the definition: %w", err)
	}
	for i := range internal.Spec.Versions {
		v := &internal.Spec.Versions[i]
		kind := schema.GroupVersionKind{Group: internal.Spec.Group, Version: v.Name, Kind: internal.Spec.Names.Kind}
		custom, err := newCustomKind(kind, internal)
		if err != nil {
			return fmt.Errorf("reading the schema of %s: %w", kind, err)
		}
		if v.Served && custom != nil {
			s.custom[kind] = custom
		}
	}
	return nil
}

// newCustomKind returns nil for a version without a schema.
func newCustomKind(kind schema.GroupVersionKind, d *apiextensions.CustomResourceDefinition) (*customKind, error) {
	v, err := apiextensions.GetSchemaForVersion(d, kind.Version)
	if err != nil || v == nil || v.OpenAPIV3Schema == nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(v.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	sub, err := apiextensions.GetSubresourcesForVersion(d, kind.Version)
	if err != nil {
		return nil, err
	}
	if sub == nil {
		sub = &apiextensions.CustomResourceSubresources{}
	}
	namespaced := d.Spec.Scope == apiextensions.NamespaceScoped
	return &customKind{schema: structural, strategy: customresource.NewStrategy(unstructuredTyper{}, namespaced, kind,
		validator, nil, structural, sub.Status, sub.Scale, nil)}, nil
}

// decode applies the schema's defaults.
func (k *customKind) decode(object []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(object); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	defaulting.Default(obj.Object, k.schema)
	return obj, nil
}

// UnknownFields are the paths of the fields that the schema of a custom resource does not know. A server refuses them,
// or drops them without a word, as its client asks.
func (s *Server) UnknownFields(kind schema.GroupVersionKind, object []byte) ([]string, error) {
	custom := s.custom[kind]
	if custom == nil {
		return nil, nil
	}
	obj, err := custom.decode(object)
	if err != nil {
		return nil, err
	}
	track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	return pruning.PruneWithOptions(obj.Object, custom.schema, true, track), nil
}

// unstructuredTyper knows the kind of objects by their own word.
type unstructuredTyper struct{}

// ObjectKinds returns the kind that the object says.
func (unstructuredTyper) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{obj.GetObjectKind().GroupVersionKind()}, false, nil
}

// Recognizes is true of everything.
func (unstructuredTyper) Recognizes(schema.GroupVersionKind) bool { return true }
