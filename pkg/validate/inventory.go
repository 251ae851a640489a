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

// together is what is known of objects that others refer to.
type together struct {
	// models of the GPUs of the nodes, and resources that the nodes offer.
	models, offered map[string]bool
	// labels are those of the nodes.
	labels map[string]string
	// sizes are what the nodes have of each resource, once for those that have the same.
	sizes []v1.ResourceList
	// groups are the PodGroups, with what declares those of the files.
	groups map[types.NamespacedName]declared
	// priorities are those of the PriorityClasses of the files.
	priorities map[string]int32
	// clustered is set if the PodGroups are those of a cluster, too.
	clustered bool
	// nodes of the files, and pods and templates of pods that refer to objects.
	nodes []nodeIn
	pods  []*reference
	// unread are objects of kinds that are not read here.
	unread []*document
}

// declared is a PodGroup of the files with its minimum, empty for one that cannot be read.
type declared struct {
	d       *document
	group   *schedulingv1alpha1.PodGroup
	minimum int
}

func (t *together) addNode(node *v1.Node, read *gpuview.Node) {
	if t.models == nil {
		t.models, t.offered = map[string]bool{}, map[string]bool{}
		t.labels = map[string]string{v1.LabelHostname: ""} // nodes in the short form get it
	}
	maps.Copy(t.labels, node.Labels)
	for _, pool := range read.Pools() {
		if pool.GPUs() > 0 && (pool.Model() != "" || pool.Offered()) {
			t.models[cmp.Or(pool.Model(), "an unknown model")] = true
		}
	}
	for _, name := range podview.OfferedResources(node) {
		t.offered[name] = true
	}
	if has := podview.Allocatable(node); len(has) > 0 &&
		!slices.ContainsFunc(t.sizes, func(l v1.ResourceList) bool { return equality.Semantic.DeepEqual(l, has) }) {
		t.sizes = append(t.sizes, has)
	}
}

// AddCluster tells what the nodes and the PodGroups of a cluster are, which the pods of the files may refer to as to
// those of the files. A cluster that does not serve PodGroups has none.
func (r *Report) AddCluster(nodes []v1.Node, groups []types.NamespacedName) {
	t := &r.together
	t.clustered = true
	keys := r.gpuKeys("")
	for i := range nodes {
		read, _ := keys.ReadGPUNode(&nodes[i])
		t.addNode(&nodes[i], read)
	}
	for _, group := range groups {
		t.addGroup(group, declared{})
	}
}

// where says where it was looked for what is missing.
func (t *together) where() string {
	if t.clustered {
		return "in the files or in the cluster"
	}
	return "in the files"
}

func (t *together) addGroup(name types.NamespacedName, by declared) {
	if t.groups == nil {
		t.groups = map[types.NamespacedName]declared{}
	}
	if by.d != nil || t.groups[name].d == nil {
		t.groups[name] = by
	}
}

// add takes in the objects that pods refer to.
func (t *together) add(d *document, obj runtime.Object) {
	switch o := obj.(type) {
	case *schedulingv1.PriorityClass:
		if t.priorities == nil {
			t.priorities = map[string]int32{}
		}
		t.priorities[o.Name] = o.Value
	case *schedulingv1alpha1.PodGroup:
		by := declared{}
		if spec, err := read.Spec(o, 0); err == nil {
			by = declared{d, o, spec.Minimum.Total}
		}
		t.addGroup(nameIn(o.Namespace, o.Name), by)
	}
}

func nameIn(namespace, name string) types.NamespacedName {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (t *together) check(profiles []string) {
	for _, r := range t.pods {
		r.misspelt(profiles)
		t.group(r)
		t.model(r)
		t.resources(r)
		t.size(r)
		t.levels(r.d, r.at, nil, r.pod)
	}
	for _, g := range t.groups {
		if g.d != nil {
			t.levels(g.d, "metadata", g.group, &v1.Pod{})
		}
	}
	t.members()
}

// group warns of a gang that nothing declares: its pods wait.
func (t *together) group(r *reference) {
	name := r.pod.Labels[schedulingv1alpha1.PodGroupLabel]
	if _, there := t.groups[nameIn(r.pod.Namespace, name)]; there || name == "" {
		return
	}
	warn := func(format string, args ...any) {
		r.d.findAt(Warning, "no-group", r.d.keyLine(r.at, schedulingv1alpha1.PodGroupLabel),
			fmt.Sprintf("label %s: ", schedulingv1alpha1.PodGroupLabel)+fmt.Sprintf(format, args...))
	}
	var names []string
	for group := range t.groups {
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
		warn("there is no PodGroup %s %s; did you mean %s?", name, t.where(), like)
	case t.clustered:
		warn("there is no PodGroup %s %s: without one the pods wait", name, t.where())
	default:
		warn("there is no PodGroup %s in the files: without one in the cluster the pods wait", name)
	}
}

// model warns of a pod that accepts no GPU of any node in the files.
func (t *together) model(r *reference) {
	request, err := r.keys.PodGPURequest(r.pod)
	models := slices.Sorted(maps.Keys(t.models))
	if err != nil || len(request.Models) == 0 || len(models) == 0 || slices.ContainsFunc(models, request.AcceptsModel) {
		return
	}
	r.d.findAt(Warning, "no-model", r.d.keyLine(r.at, wellknown.GPUModelsKey), fmt.Sprintf(
		"no node %s has a GPU of the model %s; the nodes have %s",
		t.where(), strings.Join(request.Models, " or "), strings.Join(models, ", ")))
}

// resources warns of extended resources that no node offers, or that are named almost like the resource of a GPU.
func (t *together) resources(r *reference) {
	asked := r.asked()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		line, like := asked[name], closest(name, r.keys.PodResources())
		switch {
		case !strings.Contains(name, "/") || r.keys.ReadsResource(name) && len(t.offered) == 0 || t.offered[name]:
		case r.keys.MakesGPUs(name) && !r.keys.ReadsResource(name) && like != "":
			r.d.findAt(Warning, "resource", line, fmt.Sprintf("unknown resource %s; did you mean %s?", name, like))
		case len(t.offered) > 0 && !r.implied(name):
			r.d.findAt(Warning, "resource", line, fmt.Sprintf(
				"no node %s offers the resource %s; extended resources that they offer: %s", t.where(), name, t.extended()))
		}
	}
}

func (t *together) extended() string {
	var names []string
	for name := range t.offered {
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
