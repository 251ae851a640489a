package validate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// inventory are the objects of the files, and of the cluster if it is asked, to which pods may refer.
type inventory struct {
	// models are those of the GPUs of nodes, and offered the allocatable resources.
	models, offered map[string]bool
	// labels are those of the nodes.
	labels map[string]string
	// sizes are the different allocatable resources of nodes.
	sizes []v1.ResourceList
	// groups are the PodGroups. Those of the cluster have no document.
	groups map[types.NamespacedName]declared
	// priorities are those of the PriorityClasses of the files.
	priorities map[string]int32
	// clustered is set if the objects of a cluster are included.
	clustered bool
	// nodes of the files, and pods and templates of pods that refer to objects.
	nodes []nodeIn
	pods  []*podSource
	// unread are objects of unknown kinds, which may create pods.
	unread []*document
}

// declared is a PodGroup of the files with its minimum. It is empty for an invalid one.
type declared struct {
	d       *document
	group   *schedulingv1alpha1.PodGroup
	minimum int
}

func (v *inventory) addNode(node *v1.Node, read *gpuview.Node) {
	if v.models == nil {
		v.models, v.offered = map[string]bool{}, map[string]bool{}
		v.labels = map[string]string{v1.LabelHostname: ""} // nodes in the short form get it
	}
	maps.Copy(v.labels, node.Labels)
	for _, pool := range read.Pools() {
		if pool.GPUs() > 0 && (pool.Model() != "" || pool.Offered()) {
			v.models[cmp.Or(pool.Model(), "an unknown model")] = true
		}
	}
	for _, name := range podview.OfferedResources(node) {
		v.offered[name] = true
	}
	if has := podview.Allocatable(node); len(has) > 0 &&
		!slices.ContainsFunc(v.sizes, func(l v1.ResourceList) bool { return equality.Semantic.DeepEqual(l, has) }) {
		v.sizes = append(v.sizes, has)
	}
}

// AddCluster adds the nodes and the PodGroups of a cluster to those of the files.
func (r *Report) AddCluster(nodes []v1.Node, groups []types.NamespacedName) {
	v := &r.inventory
	v.clustered = true
	keys := r.gpuKeys("")
	for i := range nodes {
		read, _ := keys.ReadGPUNode(&nodes[i])
		v.addNode(&nodes[i], read)
	}
	for _, group := range groups {
		v.addGroup(group, declared{})
	}
}

// where names the places that were searched for a missing object.
func (v *inventory) where() string {
	if v.clustered {
		return "in the files or in the cluster"
	}
	return "in the files"
}

func (v *inventory) addGroup(name types.NamespacedName, by declared) {
	if v.groups == nil {
		v.groups = map[types.NamespacedName]declared{}
	}
	if by.d != nil || v.groups[name].d == nil {
		v.groups[name] = by
	}
}

// add adds an object that pods may refer to.
func (v *inventory) add(d *document, obj runtime.Object) {
	switch o := obj.(type) {
	case *schedulingv1.PriorityClass:
		if v.priorities == nil {
			v.priorities = map[string]int32{}
		}
		v.priorities[o.Name] = o.Value
	case *schedulingv1alpha1.PodGroup:
		by := declared{}
		if spec, err := read.Spec(o, 0); err == nil {
			by = declared{d, o, spec.Minimum.Total}
		}
		v.addGroup(nameIn(o.Namespace, o.Name), by)
	}
}

func nameIn(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (v *inventory) check(profiles []string) {
	for _, r := range v.pods {
		r.misspelt(profiles)
		v.group(r)
		v.model(r)
		v.resources(r)
		v.size(r)
		v.levels(r.d, r.at, nil, r.pod)
	}
	for _, g := range v.groups {
		if g.d != nil {
			v.levels(g.d, "metadata", g.group, &v1.Pod{})
		}
	}
	v.members()
}

// group warns of a missing PodGroup: its pods wait.
func (v *inventory) group(r *podSource) {
	name := r.pod.Labels[schedulingv1alpha1.PodGroupLabel]
	if _, there := v.groups[nameIn(r.pod.Namespace, name)]; there || name == "" {
		return
	}
	warn := func(format string, args ...any) {
		r.d.findAt(Warning, "no-group", r.d.keyLine(r.at, schedulingv1alpha1.PodGroupLabel),
			fmt.Sprintf("label %s: ", schedulingv1alpha1.PodGroupLabel)+fmt.Sprintf(format, args...))
	}
	var names []string
	for group := range v.groups {
		if group.Name == name {
			warn("the PodGroup %s is in the namespace %s, not in %s: pods and their group must be in one",
				name, group.Namespace, nameIn(r.pod.Namespace, "").Namespace)
			return
		}
		names = append(names, group.Name)
	}
	like := closest(name, names)
	switch {
	case like != "":
		warn("there is no PodGroup %s %s; did you mean %s?", name, v.where(), like)
	case v.clustered:
		warn("there is no PodGroup %s %s: without one the pods wait", name, v.where())
	default:
		warn("there is no PodGroup %s in the files: without one in the cluster the pods wait", name)
	}
}

// model warns of a pod that accepts no GPU model of the nodes.
func (v *inventory) model(r *podSource) {
	request, err := r.keys.PodGPURequest(r.pod)
	models := slices.Sorted(maps.Keys(v.models))
	if err != nil || len(request.Models) == 0 || len(models) == 0 || slices.ContainsFunc(models, request.AcceptsModel) {
		return
	}
	r.d.findAt(Warning, "no-model", r.d.keyLine(r.at, wellknown.GPUModelsKey), fmt.Sprintf(
		"no node %s has a GPU of the model %s; the nodes have %s",
		v.where(), strings.Join(request.Models, " or "), strings.Join(models, ", ")))
}

// resources warns of extended resources that no node offers, or whose name resembles a GPU resource.
func (v *inventory) resources(r *podSource) {
	asked := r.asked()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		line, like := asked[name], closest(name, r.keys.PodResources())
		switch {
		case !strings.Contains(name, "/") || r.keys.ReadsResource(name) && len(v.offered) == 0 || v.offered[name]:
		case r.keys.MakesGPUs(name) && !r.keys.ReadsResource(name) && like != "":
			r.d.findAt(Warning, "resource", line, fmt.Sprintf("unknown resource %s; did you mean %s?", name, like))
		case len(v.offered) > 0 && !r.implied(name):
			r.d.findAt(Warning, "resource", line, fmt.Sprintf(
				"no node %s offers the resource %s; extended resources that they offer: %s", v.where(), name, v.extended()))
		}
	}
}

func (v *inventory) extended() string {
	var names []string
	for name := range v.offered {
		if strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
