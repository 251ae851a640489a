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

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/runview"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/yamldoc"
)

var manifestScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(schedulingv1alpha1.AddToScheme(s))
	utilruntime.Must(placementv1alpha1.AddToScheme(s))
	utilruntime.Must(networkv1alpha1.AddToScheme(s))
	return s
}()

var manifests = serializer.NewCodecFactory(manifestScheme).UniversalDeserializer()

// manifest checks any other object: the fields of kinds that are known, and the keys that our plugins read.
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
		d.report.together.unread = append(d.report.together.unread, d)
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
	d.report.together.add(d, obj)
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
	return d.search(node, value, func(i int) bool { return i%2 == 1 })
}

// search returns the line of the first scalar in a mapping that is at a wanted place among its keys and values.
func (d *document) search(node *yaml.Node, scalar string, wanted func(int) bool) int {
	for i, c := range node.Content {
		if node.Kind == yaml.MappingNode && c.Value == scalar && wanted(i) {
			return c.Line
		}
		if line := d.search(c, scalar, wanted); line > 0 {
			return line
		}
	}
	if node == d.root {
		return node.Line
	}
	return 0
}

// keys checks the annotations and labels that our plugins read, and the objects of Berth's own.
func (d *document) keys(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1.Pod:
		d.pod(o, "metadata", 1)
	case *v1.Node:
		d.node(o, "metadata")
	case *schedulingv1.PriorityClass:
		d.keysAt("metadata", wellknown.PriorityClasses)
	case *schedulingv1alpha1.PodGroup:
		_, specErr := read.Spec(o, 0)
		_, topologyErr := read.TopologyOf(o, &v1.Pod{})
		d.badErrors("metadata", specErr, topologyErr)
		if _, bad := work.Saved(o); bad != nil {
			d.bad("metadata", bad)
		}
		d.keysAt("metadata", wellknown.PodGroups)
	case *placementv1alpha1.PlacementPolicy:
		d.policy(o)
		d.keysAt("metadata", "")
	case *networkv1alpha1.IPPool:
		d.pool(o)
		d.keysAt("metadata", "")
	case *networkv1alpha1.IPReservation:
		d.reservation(o)
		d.keysAt("metadata", "")
	default:
		d.controller()
	}
}

// pod checks a pod, or a template of that many pods, once the names of GPUs are known.
func (d *document) pod(pod *v1.Pod, at string, count int) {
	d.report.named = append(d.report.named, func() { d.podOf(d.report.gpuKeys(pod.Spec.SchedulerName), pod, at, count) })
}

func (d *document) podOf(keys *gpuview.Keys, pod *v1.Pod, at string, count int) {
	_, gpuErr := keys.PodGPURequest(pod)
	_, _, gangErr := read.Of(pod)
	_, topologyErr := read.TopologyOf(nil, pod)
	_, _, badSpot := priceview.PodSpotPolicy(pod)
	_, badWindow := priceview.PodStartWindow(pod)
	_, badObjective := podview.PodObjective(pod)
	_, _, badClass := podview.NamedSLAClass(pod)
	d.badErrors(at, gpuErr, gangErr, topologyErr)
	_, badLicenses := podview.PodLicenses(pod)
	_, badDatasets := podview.PodDatasets(pod)
	_, badPool := podview.PodIPPool(pod)
	_, badBackfill := read.Backfill(pod)
	_, badRunTime := runview.Declared(pod)
	_, badWork := work.Declared(pod)
	_, badCheckpoint := work.Saved(pod)
	for _, bad := range []*wellknown.BadValue{badSpot, badWindow, badObjective, badClass, badLicenses,
		badDatasets, badPool, badBackfill, badRunTime, badWork, badCheckpoint} {
		if bad != nil {
			d.bad(at, bad)
		}
	}
	_, ends := runview.DueOf(pod, nil)
	if _, has := pod.Annotations[wellknown.DeadlineKey]; has && badWindow == nil && !ends && !priceview.NamesWindow(pod) {
		d.findAt(Warning, "no-effect", d.keyLine(at, wellknown.DeadlineKey), fmt.Sprintf(
			"annotation %s has no effect without %s or %s, unless a price window of the profile selects the pod by its labels",
			wellknown.DeadlineKey, wellknown.RunTimeKey, wellknown.StartWindowKey))
	}
	d.uses(pod, at)
	if priceview.NamesWindow(pod) && pod.Annotations[wellknown.StartWindowKey] == "" {
		d.bad(at, &wellknown.BadValue{Object: "pod", Kind: "annotation", Key: wellknown.StartWindowKey,
			Allowed: "the name of a window of the scheduler"})
	}
	if name, kind, _ := podview.NamedSLAClass(pod); kind != "" && name == "" {
		d.bad(at, &wellknown.BadValue{Object: "pod", Kind: kind, Key: wellknown.SLAClassKey,
			Allowed: "the name of a class of the scheduler"})
	}
	d.foreign(pod, at)
	d.report.together.addPod(d, keys, pod, at, count)
	d.keysAt(at, wellknown.Pods)
}

// badErrors reports what readers found; most errors are bad values.
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

func (d *document) bad(at string, bad *wellknown.BadValue) {
	if bad.Kind != "annotation" && bad.Kind != "label" {
		d.findAt(Error, "value", d.keyLine(at, bad.Key), bad.Error())
		return
	}
	// The path says already of what object, and which key, the message speaks.
	message := bad.Error()
	if i := strings.Index(message, bad.Key+": "); i >= 0 {
		message = message[i+len(bad.Key)+2:]
	} else if i := strings.Index(message, bad.Key+" is missing"); i >= 0 {
		message = message[i+len(bad.Key)+1:]
	}
	d.add(Error, "value", d.keyLine(at, bad.Key), fmt.Sprintf("%s.%ss[%s]", at, bad.Kind, bad.Key), message)
}
