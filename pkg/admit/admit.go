// Package admit says what an API server would refuse. Built-in kinds are defaulted and validated by the code of the API
// server itself, custom resources by the schema of their CustomResourceDefinition. Nothing is asked of a cluster, so
// what admission webhooks and policies would say is not known.
package admit

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"sigs.k8s.io/yaml"
)

// Server stands for an API server.
type Server struct {
	custom map[schema.GroupVersionKind]*customKind
}

// NewServer makes one that serves the built-in kinds and those whose definitions are in the files *.yaml at the top of
// a folder.
func NewServer(definitions fs.FS) (*Server, error) {
	s := &Server{custom: map[schema.GroupVersionKind]*customKind{}}
	files, err := fs.Glob(definitions, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the definitions: %w", err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(definitions, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path.Base(name), err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &definition); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path.Base(name), err)
		}
		if definition.Kind != definitionKind {
			continue
		}
		if err := s.Define(&definition); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
	}
	return s, nil
}

// Serves says whether Create can tell anything of a kind.
func (s *Server) Serves(kind schema.GroupVersionKind) bool {
	_, builtIn := strategies[kind.GroupKind()]
	return s.custom[kind] != nil || builtIn && legacyscheme.Scheme.Recognizes(kind) || kind.GroupKind() == definition
}

// Create returns why a server would not create the object, and of what it would warn. The object is JSON of a kind that
// is served. An error means that the object cannot be decoded.
func (s *Server) Create(
	ctx context.Context, kind schema.GroupVersionKind, object []byte,
) (field.ErrorList, []string, error) {
	obj, strategy, err := s.decode(kind, object)
	if err != nil {
		return nil, nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the metadata: %w", err)
	}
	rest.FillObjectMetaSystemFields(m)
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(strategy.GenerateName(m.GetGenerateName()))
	}
	switch {
	case !strategy.NamespaceScoped():
		m.SetNamespace(metav1.NamespaceNone)
	case m.GetNamespace() == "":
		m.SetNamespace(metav1.NamespaceDefault)
	}
	ctx = request.WithNamespace(ctx, m.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIGroup: kind.Group, APIVersion: kind.Version,
		Namespace: m.GetNamespace(), Name: m.GetName(),
	})
	if service, ok := obj.(*core.Service); ok && service.Spec.ClusterIP != "" && len(service.Spec.ClusterIPs) == 0 {
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP} // as its storage does
	}
	strategy.PrepareForCreate(ctx, obj)
	if errs := rest.ValidateCreate(ctx, obj, strategy); len(errs) > 0 {
		return errs, nil, nil
	}
	return nil, strategy.WarningsOnCreate(ctx, obj), nil
}

// decode makes the object as the server's storage sees it: of the internal version and with its defaults.
func (s *Server) decode(kind schema.GroupVersionKind, object []byte) (runtime.Object, rest.RESTCreateStrategy, error) {
	if custom := s.custom[kind]; custom != nil {
		obj, err := custom.decode(object)
		return obj, custom.strategy, err
	}
	decoder, strategy := builtIn, strategies[kind.GroupKind()]
	if kind.GroupKind() == definition {
		decoder, strategy = definitions, definitionStrategy
	}
	obj, _, err := decoder.Decode(object, &kind, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("decoding the object: %w", err)
	}
	return obj, strategy, nil
}

var builtIn = serializer.NewCodecFactory(legacyscheme.Scheme).UniversalDecoder()
