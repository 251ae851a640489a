package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/types"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/yamldoc"
)

var manifestScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(schedulingv1alpha1.AddToScheme(s))
	utilruntime.Must(berthv1alpha1.AddToScheme(s))
	return s
}()

var manifests = serializer.NewCodecFactory(manifestScheme).UniversalDeserializer()

// manifest checks any other object: the fields of known kinds, and the keys that Berth's plugins read.
func (d *document) manifest() {
	gvk := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	switch {
	case d.Kind == "" && yamldoc.Child(d.root, "shapes") != nil:
		d.shapes()
		return
	case gvk.Group == types.KustomizationVersion[:strings.IndexByte(types.KustomizationVersion, '/')] &&
		d.Kind == types.KustomizationKind:
		d.faults(&types.Kustomization{})
		return
	case d.Kind == "List" && d.APIVersion == "v1":
		d.list()
		return
	case d.Kind == "" || d.APIVersion == "":
		d.findAt(Error, "kind", d.root.Line, "apiVersion and kind are required")
		return
	case !manifestScheme.Recognizes(gvk):
		if d.noKind(gvk) {
			return
		}
		d.find(Note, "not-checked", "kind", "not checked: the fields of this kind in "+d.APIVersion+" are not known here")
		d.declares()
		d.controller()
		d.report.inventory.unread = append(d.report.inventory.unread, d)
		return
	}
	obj, err := manifestScheme.New(gvk)
	if err != nil {
		d.find(Error, "kind", "kind", err.Error())
		return
	}
	if removed(obj) {
		d.noKind(gvk)
		return
	}
	if !d.faults(obj) {
		return
	}
	if obj, _, err = manifests.Decode(d.json, nil, nil); err != nil {
		d.find(Error, "invalid", "", err.Error())
		return
	}
	d.keys(obj)
	d.declares()
	d.report.inventory.add(d, obj)
}

// list checks the objects of a list.
func (d *document) list() {
	var list struct{ Items []json.RawMessage }
	if json.Unmarshal(d.json, &list) != nil {
		d.find(Error, "type", "items", "items must be a list of objects")
		return
	}
	nodes, _ := d.at("items")
	for i, node := range yamldoc.Items(nodes) {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		one := &document{report: d.report, file: d.file, offset: d.offset, root: node, json: list.Items[i]}
		one.check()
	}
}

// valueLine returns the line of the first field with that value.
func (d *document) valueLine(node *yaml.Node, value string) int {
	for i, c := range node.Content {
		if node.Kind == yaml.MappingNode && c.Value == value && i%2 == 1 {
			return c.Line
		}
		if line := d.valueLine(c, value); line > 0 {
			return line
		}
	}
	if node == d.root {
		return node.Line
	}
	return 0
}

// keys checks the annotations and labels that Berth's plugins read, and objects of Berth's own kinds.
func (d *document) keys(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1.Pod:
		d.report.inventory.pods = append(d.report.inventory.pods, &podSource{d: d, pod: o, at: "metadata", count: 1})
	case *v1.Node:
		d.report.inventory.nodes = append(d.report.inventory.nodes, nodeIn{d, o, "metadata"})
	case *schedulingv1.PriorityClass:
		d.keysAt("metadata", wellknown.PriorityClasses)
	case *schedulingv1alpha1.PodGroup:
		_, specErr := read.Spec(o, 0)
		_, topologyErr := read.TopologyOf(o, &v1.Pod{})
		d.badErrors("metadata", specErr, topologyErr)
		_, badCheckpoint := work.Saved(o)
		d.bad("metadata", badCheckpoint)
		d.keysAt("metadata", wellknown.PodGroups)
	case *berthv1alpha1.PlacementPolicy:
		d.policy(o)
		d.keysAt("metadata", "")
	case *berthv1alpha1.IPPool:
		d.pool(o)
		d.keysAt("metadata", "")
	case *berthv1alpha1.IPReservation:
		d.reservation(o)
		d.keysAt("metadata", "")
	default:
		d.controller()
	}
}

// badErrors reports errors of readers. Most are bad values.
func (d *document) badErrors(at string, errs ...error) {
	for _, err := range errs {
		var bad *wellknown.BadValue
		if errors.As(err, &bad) {
			d.bad(at, bad)
		} else if err != nil {
			d.find(Error, "value", at, err.Error())
		}
	}
}

// bad reports values that cannot be used; nil is none.
func (d *document) bad(at string, all ...*wellknown.BadValue) {
	for _, bad := range all {
		switch {
		case bad == nil:
			continue
		case bad.Kind != "annotation" && bad.Kind != "label":
			d.findAt(Error, "value", d.keyLine(at, bad.Key), bad.Error())
			continue
		}
		// The path names the object and the key already.
		message := bad.Error()
		if i := strings.Index(message, bad.Key+": "); i >= 0 {
			message = message[i+len(bad.Key)+2:]
		} else if i := strings.Index(message, bad.Key+" is missing"); i >= 0 {
			message = message[i+len(bad.Key)+1:]
		}
		d.add(Error, "value", d.keyLine(at, bad.Key), fmt.Sprintf("%s.%ss[%s]", at, bad.Kind, bad.Key), message)
	}
}
