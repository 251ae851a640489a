package validate

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/spelling"
	"berth.dev/berth/pkg/wellknown"
)

// size warns of a pod that is larger than every node.
func (v *inventory) size(r *podSource) {
	pod := r.pod.DeepCopy()
	corev1defaults.SetObjectDefaults_Pod(pod) // a missing request defaults to the limit
	asked := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	maps.DeleteFunc(asked, func(_ v1.ResourceName, n resource.Quantity) bool { return n.IsZero() })
	names, offered := slices.Sorted(maps.Keys(asked)), true
	var amounts []string
	for _, name := range names {
		wanted := asked[name]
		amounts = append(amounts, wanted.String()+" "+string(name))
		largest := resource.Quantity{}
		for _, has := range v.sizes {
			if n := has[name]; n.Cmp(largest) > 0 {
				largest = n
			}
		}
		if largest.IsZero() {
			offered = false // resources warns of it
		} else if largest.Cmp(wanted) < 0 {
			r.tooLarge(name, fmt.Sprintf("no node %s has %s %s; the largest has %s: the pod starts on none of them", v.where(),
				wanted.String(), name, largest.String()))
			return
		}
	}
	for _, has := range v.sizes {
		if !slices.ContainsFunc(names, func(name v1.ResourceName) bool {
			n, wanted := has[name], asked[name]
			return n.Cmp(wanted) < 0
		}) {
			return
		}
	}
	if len(names) > 0 && offered {
		r.tooLarge(names[0], fmt.Sprintf("no node %s has %s together: the pod starts on none of them", v.where(),
			strings.Join(amounts, ", ")))
	}
}

// tooLarge warns at the line of the request.
func (r *podSource) tooLarge(name v1.ResourceName, message string) {
	line, known := r.asked()[string(name)]
	if !known {
		line = r.d.line(r.spec())
	}
	r.d.findAt(Warning, "too-large", line, message)
}

// levels warns of levels of a group, which may be nil, or of a pod that no node has as a label.
func (v *inventory) levels(d *document, at string, group *schedulingv1alpha1.PodGroup, pod *v1.Pod) {
	topology, err := read.TopologyOf(group, pod)
	if err != nil || len(v.labels) == 0 {
		return
	}
	named := map[string][]string{wellknown.TopologyRequiredKey: topology.Required,
		wellknown.TopologyPreferredKey: topology.Preferred}
	if topology.Segment.Level != "" {
		named[wellknown.SegmentTopologyKey] = []string{topology.Segment.Level}
	}
	if group != nil {
		if spec, err := read.Spec(group, 0); err == nil && spec.Minimum.Tree != nil {
			named[wellknown.GroupsKey] = levelsOf(spec.Minimum.Tree)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		for _, level := range named[key] {
			if message := spelling.NoLabel("no node "+v.where(), []string{level}, v.labels); message != "" {
				d.findAt(Warning, "no-level", d.keyLine(at, key), message)
			}
		}
	}
}

// levelsOf are the levels of a group within a gang, and of the groups in it.
func levelsOf(g *tree.Group) []string {
	levels := slices.Concat(g.Required, g.Preferred)
	for i := range g.Groups {
		levels = append(levels, levelsOf(&g.Groups[i])...)
	}
	return levels
}

// members warns of gangs for which the files create fewer pods than have to start together.
func (v *inventory) members() {
	type made struct {
		*podSource
		pods, minimum int
	}
	gangs := map[types.NamespacedName]*made{}
	for _, r := range v.pods {
		id, minimum, err := read.Of(r.pod)
		if err != nil || id.Name == "" {
			continue
		}
		name := nameIn(id.Namespace, id.Name)
		if gangs[name] == nil {
			gangs[name] = &made{podSource: r}
		}
		gangs[name].pods += r.count
		gangs[name].minimum = max(gangs[name].minimum, minimum)
	}
	for _, name := range slices.SortedFunc(maps.Keys(gangs),
		func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }) {
		g := gangs[name]
		d, at, of := g.d, g.d.line(g.at), "gang "+name.Name
		if group := v.groups[name]; group.d != nil {
			d, at, g.minimum = group.d, group.d.line("spec.minMember"), group.minimum
			of = "PodGroup " + name.Name
		}
		if g.minimum <= g.pods || v.madeElsewhere(name.Name) {
			continue
		}
		d.findAt(Warning, "too-few", at,
			fmt.Sprintf("%s starts with %s, and the files make %d: the pods wait until there are more",
				of, plural.Of(g.minimum, "pod"), g.pods))
	}
}

// eviction warns of a Job that fails when its gang is evicted, and of a JobSet with such a Job and without a failure
// policy. Failures is the number of the Job's pods, path that of their template.
func (d *document) eviction(job map[string]any, set *unstructured.Unstructured, path string, failures int) {
	var spec batchv1.JobSpec
	restarts, _, _ := unstructured.NestedInt64(set.Object, "spec", "failurePolicy", "maxRestarts")
	_, ruled, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "failurePolicy", "rules")
	if !slices.Contains([]string{"Job", "CronJob", "JobSet"}, d.Kind) || restarts > 0 || ruled ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(job, &spec) != nil {
		return
	}
	warn := func(why string) {
		ends := map[string]string{"JobSet": "the JobSet fails; let its failurePolicy restart it, or "}[d.Kind]
		d.findAt(Warning, "eviction", d.line(path+".metadata"), "when the gang is evicted, "+why+": "+
			cmp.Or(ends, "the Job ends; ")+"let podFailurePolicy ignore DisruptionTarget")
	}
	rules := ptr.Deref(spec.PodFailurePolicy, batchv1.PodFailurePolicy{}).Rules
	first := slices.IndexFunc(rules, func(rule batchv1.PodFailurePolicyRule) bool {
		return slices.ContainsFunc(rule.OnPodConditions, func(on batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return on.Type == v1.DisruptionTarget
		})
	})
	if first >= 0 && rules[first].Action != batchv1.PodFailurePolicyActionCount {
		if action := rules[first].Action; action != batchv1.PodFailurePolicyActionIgnore {
			warn(fmt.Sprintf("podFailurePolicy says %s for DisruptionTarget", action))
		}
		return
	}
	limit, allowed := "backoffLimit", ptr.Deref(spec.BackoffLimit, 6)
	if each := spec.BackoffLimitPerIndex; each != nil && (*each == 0 || spec.BackoffLimit == nil) {
		limit, allowed, failures = "backoffLimitPerIndex", *each, 1
	}
	if failures > int(allowed) {
		warn(fmt.Sprintf("each of its pods counts as a failure, and %s is %d", limit, allowed))
	}
}

// madeElsewhere reports whether an object of an unknown kind names the gang: it may create pods of it.
func (v *inventory) madeElsewhere(name string) bool {
	return slices.ContainsFunc(v.unread, func(d *document) bool { return bytes.Contains(d.json, []byte(`"`+name+`"`)) })
}
