// Package crd finds the fields of Berth's custom resources that the API server drops. A CustomResourceDefinition of the
// same name, from another project or another release, may have replaced Berth's: the API server then drops unknown
// fields from every write without an error.
//
// cmd/scheduler runs Monitor, and berth validate calls Check. It never changes a definition.
package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// Pruned is a field that the API server drops.
type Pruned struct {
	// Resource is the resource with its group, as in podgroups.scheduling.x-k8s.io, and Field the path of the field.
	Resource string `json:"resource"`
	Field    string `json:"field"`
	// File in manifests/crd has the definition with the field.
	File string `json:"file"`
}

// String says what is dropped and what to apply.
func (p Pruned) String() string {
	return fmt.Sprintf(
		"CustomResourceDefinition %s has no field %s: the API server drops what is written there; apply manifests/crd/%s",
		p.Resource, p.Field, p.File)
}

// kind is a custom resource that needs all of its fields.
type kind struct {
	schema.GroupVersionKind
	resource string
	object   reflect.Type
}

var kinds = []kind{
	{schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"), "podgroups",
		reflect.TypeFor[schedulingv1alpha1.PodGroup]()},
	{berthv1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy"), "placementpolicies",
		reflect.TypeFor[berthv1alpha1.PlacementPolicy]()},
	{berthv1alpha1.SchemeGroupVersion.WithKind("IPPool"), "ippools", reflect.TypeFor[berthv1alpha1.IPPool]()},
	{berthv1alpha1.SchemeGroupVersion.WithKind("IPReservation"), "ipreservations",
		reflect.TypeFor[berthv1alpha1.IPReservation]()},
}

// Check reads the OpenAPI schemas of the kinds that the API server serves, and returns the fields that they lack, in a
// fixed order. Every account may read these schemas, unlike CustomResourceDefinitions.
func Check(ctx context.Context, client restclient.Interface) ([]Pruned, error) {
	documents := map[schema.GroupVersion]*document{}
	var missing []Pruned
	for _, k := range kinds {
		gv := k.GroupVersion()
		served, asked := documents[gv]
		if !asked {
			var err error
			if served, err = read(ctx, client, gv); err != nil {
				return nil, err
			}
			documents[gv] = served
		}
		if of := served.of(k.GroupVersionKind); of != nil {
			for _, field := range of.lacks(k.object, "") {
				missing = append(missing, Pruned{
					Resource: k.resource + "." + k.Group, Field: field, File: k.Group + "_" + k.resource + ".yaml",
				})
			}
		}
	}
	return missing, nil
}

// document is a part of an OpenAPI document, nil for a version that is not served.
type document struct {
	Components struct {
		Schemas map[string]*properties `json:"schemas"`
	} `json:"components"`
}

// properties is the schema of an object, a list or a value.
type properties struct {
	Kinds      []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	KeepsAll   bool                      `json:"x-kubernetes-preserve-unknown-fields"`
	Properties map[string]*properties    `json:"properties"`
	Items      *properties               `json:"items"`
	// Additional is the schema of the values of a map, or true for any.
	Additional json.RawMessage `json:"additionalProperties"`
}

func read(ctx context.Context, client restclient.Interface, gv schema.GroupVersion) (*document, error) {
	text, err := client.Get().AbsPath("/openapi/v3/apis", gv.Group, gv.Version).SetHeader("Accept",
		"application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nothing is served
	}
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", gv, err)
	}
	d := &document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("reading the schemas of %s: %w", gv, err)
	}
	return d, nil
}

// of returns the schema of a kind, nil if it is not served.
func (d *document) of(gvk schema.GroupVersionKind) *properties {
	if d == nil {
		return nil
	}
	for _, s := range d.Components.Schemas {
		if slices.Contains(s.Kinds, metav1.GroupVersionKind(gvk)) {
			return s
		}
	}
	return nil
}

// lacks returns the fields of the type that the schema does not have, without those within a missing field.
func (p *properties) lacks(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if p == nil || p.KeepsAll || len(p.Additional) > 0 {
		return nil
	}
	if of.Kind() == reflect.Slice && p.Items != nil {
		return p.Items.lacks(of.Elem(), path+"[]")
	}
	if of.Kind() != reflect.Struct || len(p.Properties) == 0 {
		return nil // a value without fields
	}
	var missing []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Type == reflect.TypeFor[metav1.ObjectMeta]() ||
			name == "-":
		case name == "":
			missing = append(missing, p.lacks(field.Type, path)...)
		case p.Properties[name] == nil:
			missing = append(missing, strings.TrimPrefix(path+"."+name, "."))
		default:
			missing = append(missing, p.Properties[name].lacks(field.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return missing
}
