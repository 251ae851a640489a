package validate

import (
	"context"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	componentversion "k8s.io/component-base/version"

	shipped "berth.dev/berth/manifests"
	"berth.dev/berth/pkg/admit"
	"berth.dev/berth/pkg/yamldoc"
)

// server stands for the API server of a cluster in which Berth is installed.
var server = sync.OnceValues(func() (*admit.Server, error) {
	definitions, err := fs.Sub(shipped.Files, "crd")
	if err != nil {
		return nil, fmt.Errorf("opening the shipped definitions: %w", err)
	}
	return admit.NewServer(definitions)
})

// serverOf is what would answer for the kind: the definitions among the files count before the shipped ones.
func (r *Report) serverOf(kind schema.GroupVersionKind) *admit.Server {
	if r.defined != nil && r.defined.Serves(kind) {
		return r.defined
	}
	if s, err := server(); err == nil && s.Serves(kind) {
		return s
	}
	return nil
}

// refused finds why the API server would not create the object, of what is not found yet. In objects with a field that
// is unknown no required field is missed: it may be there, misspelt. Where a value of a wrong type was left out, what
// refers to it is not missed either.
func (d *document) refused(s *yamldoc.Structure) {
	kind := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	server := d.report.serverOf(kind)
	if server == nil {
		return
	}
	errs, warnings, err := server.Create(context.Background(), kind, d.json)
	if err != nil {
		if !s.Wrong() {
			d.decodingErrors(err)
		}
		return
	}
	selects := false
	for _, e := range errs {
		selects = selects || e.Field == "spec.selector" && e.Type == field.ErrorTypeRequired
	}
	for _, e := range errs {
		parent := e.Field[:max(0, strings.LastIndexByte(e.Field, '.'))]
		if e.Type == field.ErrorTypeRequired && (s.Lacking(parent) || s.Lacking(e.Field)) {
			continue
		}
		if d.faulty(fieldName(e)) || !s.Beside(e.Field) || s.Wrong() && e.Type == field.ErrorTypeNotFound {
			continue
		}
		if selects && e.Field == "spec.template.metadata.labels" {
			continue // they do not match the selector that is missing
		}
		if d.byDefault(e, errs) {
			continue
		}
		d.findIn(Error, "invalid", fieldName(e), body(e))
	}
	for _, warning := range warnings {
		path, message, found := strings.Cut(warning, ": ")
		if !found || strings.ContainsAny(path, " ") {
			path, message = "", warning
		}
		d.findIn(Warning, "server", path, message)
	}
}

// faulty says whether there is a finding about the field or about a part of it.
func (d *document) faulty(path string) bool {
	return slices.ContainsFunc(d.faults, func(known string) bool {
		return path == "" || known == path || strings.HasPrefix(known, path+".") || strings.HasPrefix(known, path+"[")
	})
}

// byDefault says whether an error is about a request that the document does not make, and is there again for the limit
// that the request is taken from.
func (d *document) byDefault(e *field.Error, errs field.ErrorList) bool {
	container, resource, ok := strings.Cut(e.Field, ".resources.requests[")
	if node, _ := d.at(e.Field); !ok || node != nil {
		return false
	}
	limit := container + ".resources.limits[" + resource
	return slices.ContainsFunc(errs, func(other *field.Error) bool { return other.Field == limit })
}

// fieldName leaves out the name that stands for the whole object.
func fieldName(e *field.Error) string {
	if e.Field == "<nil>" {
		return ""
	}
	return e.Field
}

// longestBody is how much of a message is shown: some repeat the whole object.
const longestBody = 400

// body is the message without the field.
func body(e *field.Error) string {
	text := oneLine(e.ErrorBody())
	// The schema of a custom resource repeats the field.
	text = strings.ReplaceAll(text, ": "+e.Field+" in body", ":")
	if len(text) <= longestBody {
		return text
	}
	if e.Detail != "" && len(e.Detail) <= longestBody {
		return e.Type.String() + ": " + oneLine(e.Detail)
	}
	return text[:longestBody] + "…"
}

// removed reports a version that API servers do not serve any more.
func (d *document) removed(obj runtime.Object) bool {
	old, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) })
	if !ok {
		return false
	}
	major, minor := old.APILifecycleRemoved()
	now, err := version.ParseGeneric(componentversion.DefaultKubeBinaryVersion)
	if err != nil || now.LessThan(version.MajorMinor(uint(major), uint(minor))) { //nolint:gosec // versions are small
		return false
	}
	message := fmt.Sprintf("%s is not served since Kubernetes %d.%d", d.APIVersion, major, minor)
	if newer, ok := obj.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		message += "; use " + newer.APILifecycleReplacement().GroupVersion().String()
	}
	d.findIn(Error, "kind", "apiVersion", message)
	return true
}

// define remembers a kind that the files define.
func (d *document) define(definition *apiextensionsv1.CustomResourceDefinition) {
	if d.report.defined == nil {
		d.report.defined, _ = admit.NewServer(noFiles{})
	}
	if err := d.report.defined.Define(definition); err != nil {
		d.find(Error, "invalid", "spec", err.Error())
	}
}

// noFiles is a folder without files.
type noFiles struct{}

// Open finds nothing.
func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// customResource checks an object of a kind that is not built in, by the definition among the files.
func (d *document) customResource() {
	kind := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	s := d.report.serverOf(kind)
	if s == nil {
		d.find(Note, "not-checked", "kind", "not checked: no definition of this kind in "+d.APIVersion+" is known here")
		return
	}
	metadata := &yamldoc.Structure{}
	if node := yamldoc.Child(d.root, "metadata"); node != nil {
		metadata.Check(node, reflect.TypeFor[metav1.ObjectMeta](), field.NewPath("metadata"))
	}
	d.tell(metadata)
	fields, err := s.UnknownFields(kind, d.json)
	if err != nil {
		d.decodingErrors(err)
		return
	}
	for _, path := range fields {
		metadata.Lacks(path[:max(0, strings.LastIndexByte(path, '.'))])
		d.findIn(Error, "unknown-field", path, "unknown field")
	}
	if d.json, err = metadata.Rest(d.root); err == nil {
		d.refused(metadata)
	}
	d.unknownKeys("metadata")
}
